// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/operations/reduction.hpp"
#include "engine/placement/placement.hpp"
#include "ground/base/byte_pool.hpp"
#include "ground/layout/stretch.hpp"

#include "engine/pipeline/server/open_stream.hpp"

namespace tailrace::pipeline {

/// One rank's share of a record: in the rank's lane, or in a message of the server that reads the lane.
struct Piece {
  int rank = 0;
  std::uint64_t number = 0;  // descriptor, for pieces in a lane
  bool in_lane = false;
  std::span<const std::byte> bytes{};           // for pieces that arrived as a message
  std::shared_ptr<const ByteVector> message{};  // where the bytes lie

  [[nodiscard]] std::span<const std::byte> content(const Lanes& lanes, ByteVector& scratch) const {
    return in_lane ? lanes.at(rank).reader().bytes(number, scratch) : bytes;
  }
};
/// Notes in the lanes that these pieces were used up.
void use_up(Lanes& lanes, std::span<const Piece> pieces);

/// One record with all its pieces: what encoding takes.
struct Gathered {
  std::uint64_t number = 0;
  SequenceEntry entry;
  std::int64_t operation = 0;  // number within its step
  bool poisoned = false;
  std::vector<Piece> pieces;
};

/// A record as it is written: its bytes, or a function that puts its values together, part by part, while
/// they are written. A part that was put together a moment ago is still in the caches when the system copies
/// it.
struct EncodedRecord {
  ByteVector bytes{};
  /// Any thread may call it. Puts the bytes from `first` to `end`, of whole elements, together at `out`.
  std::function<void(Bytes first, Bytes end, std::byte* out)> put_together{};
  Bytes size = 0;     // of the record, if it is put together
  Bytes element = 1;  // of its values
  /// Any thread may call it, once, before put_together(). Waits for a move of the values that has begun.
  /// Returns the values if they were moved into memory of their own. Afterwards nobody moves them.
  std::function<std::optional<ByteVector>()> claim{};
  // If another server has encoded the record, its bytes lie in that server's message.
  std::span<const std::byte> sent{};
  std::shared_ptr<const ByteVector> message{};

  [[nodiscard]] std::span<const std::byte> content() const {
    return message ? sent : std::span<const std::byte>(bytes);
  }
  [[nodiscard]] Bytes length() const { return put_together ? size : static_cast<Bytes>(content().size()); }
  /// Any thread may call it. Afterwards the record is either `bytes` or `put_together`, and stays so.
  void settle() {
    if (!claim) return;
    auto moved = std::exchange(claim, nullptr)();
    if (!moved) return;
    bytes = std::move(*moved);
    put_together = nullptr;
  }
};

/// Decides between two threads that want the values of a record whose pieces stay. One writes the values. The
/// other moves them into memory of their own, because a rank waits for room. The first to come gets them.
class Claim {
 public:
  /// Returns false if the values were taken for writing, or another move has begun.
  [[nodiscard]] bool begin_move();
  void end_move();
  /// Returns true if the values were moved. Waits for a move that has begun; none begins later.
  bool take();

 private:
  enum class State { free, moving, moved, taken };
  std::mutex mutex_;
  std::condition_variable end_of_move_;
  State state_ = State::free;
};

/// One chunk whose size the root was told: what encoding hands on.
struct Encoded {
  std::int64_t step = 0;
  std::vector<EncodedRecord> records;          // in put order
  std::shared_ptr<const Span::About> about{};  // set for the trace alone

  [[nodiscard]] Bytes size() const {
    Bytes size = 0;
    for (const EncodedRecord& record : records) size += record.length();
    return size;
  }
};

/// An owner tells the root this of a chunk, once it has encoded all of its records.
struct WholeChunk {
  std::int64_t step = 0;
  bool poisoned = false;
  Status status;
  std::vector<placement::Record> records;  // in put order, without offsets

  [[nodiscard]] Bytes size() const {
    Bytes size = 0;
    for (const placement::Record& record : records) size += record.length;
    return size;
  }
  /// Packs it with the chunk's number, or unpacks it behind the number.
  void pack(Packer& out) const;
  static WholeChunk unpack(Unpacker& in);
};

/// The third stage. It takes records with all their pieces (Gathered), assembles and encodes them on workers,
/// and tells the root the size of each chunk once all its records are encoded. It keeps the chunks until the
/// root has placed them, and then hands them on (Encoded). Their bytes count against the workspace until they
/// are written.
///
/// Records of plain values are not encoded. Their pieces stay where they are until they are written, or until
/// a rank waits for the room in its lane. Then workers move the records into the workspace.
class Encoding {
 public:
  explicit Encoding(OpenStream& stream);
  /// Has chunks told to `whole` once all their records are encoded, in place of the root.
  using Whole = std::function<void(std::uint64_t number, WholeChunk chunk)>;
  void tell(Whole whole) { whole_ = std::move(whole); }

  /// Notes that the put order has another record of a chunk that this server owns.
  void announce(const SequenceEntry& record);
  /// Notes that the put order has no more records of a chunk, whoever owns it.
  void close_chunk(std::uint64_t chunk);
  /// True if the record may be taken now. This needs a worker, and workspace for the record; without
  /// workspace the record may only be taken if no older chunk is left whose writing would free some.
  [[nodiscard]] bool has_room(const SequenceEntry& record) const;
  void take(Gathered gathered);
  /// Hands on a chunk whose size the root was told. Its bytes still count against the workspace.
  [[nodiscard]] Encoded hand_on(std::uint64_t chunk);
  /// Says that a chunk was written or dropped, and gives back the memory of its records.
  void forget(std::uint64_t chunk, Encoded encoded);
  /// Has workers move records into the workspace whose pieces lie in the lanes of ranks that wait for room.
  /// Returns true if there was such a record.
  bool make_room();
  /// Returns true if no worker moves a record.
  [[nodiscard]] bool is_idle() const { return moving_ == 0; }
  /// True if the oldest chunk is encoded as a whole, and nobody has said yet where it goes.
  [[nodiscard]] bool waits_for_place() const {
    if (chunks_.empty()) return false;
    const Chunk& oldest = chunks_.begin()->second;
    return oldest.closed && oldest.open == 0 && !oldest.handed_on;
  }
  /// Frees memory of the pool above the stream's share of the workspace. The share shrinks when a stream is
  /// added.
  void shrink_pool();
  /// Returns the size of the memory in the pool.
  [[nodiscard]] Bytes kept() const { return pool_.size(); }

 private:
  /// A record that this stage has taken.
  struct Work {
    Gathered record;
    ByteVector bytes;
    std::vector<Bytes> parts{};  // codec::Encoder::parts
    std::optional<codec::KeptBits> kept_bits{};
    bool stays = false;  // the pieces stay where they are
    bool moves = false;  // a worker was told to move the record
    bool moved = false;  // the worker has moved it, and sets this before its job ends
    Claim claim;         // of `bytes` as long as the pieces stay
    Bytes size = 0;
    Bytes held = 0;  // bytes that count against the workspace
    int worker = 0;
    std::int64_t began = 0, assemble = 0, encode = 0;  // time and durations
  };
  struct Chunk {
    std::int64_t step = 0;
    std::vector<std::shared_ptr<Work>> works;
    int open = 0;  // records not encoded yet
    bool closed = false;
    bool poisoned = false;
    bool handed_on = false;
    Status status;
  };

  using Pieces = std::span<const std::span<const std::byte>>;
  Status assemble_and_encode(int worker, Work& work);
  Status encode(Work& work, std::span<std::byte> values);
  std::span<std::byte> assemble(const Work& work, Pieces pieces);
  [[nodiscard]] bool is_whole(const Work& work, Pieces pieces) const;
  void assemble_plain(Work& work, codec::PlainValues as, Pieces pieces);
  Status reduce(Work& work, Pieces pieces, std::span<std::byte>& whole);
  [[nodiscard]] bool may_stay(const Gathered& record) const;
  [[nodiscard]] layout::Stretch stretch_of(const Work& work) const;
  void put_together(const Work& work, layout::Stretch stretch) const;
  [[nodiscard]] ByteVector unowned_value(int field, Bytes scalar) const;
  void move(const std::shared_ptr<Work>& work);
  Status move_on_worker(Work& work);
  void on_moved(Work& work, Bytes more);
  void let_go(Work& work);
  void count(const Work& work);
  [[nodiscard]] Span::About about(const SequenceEntry& first, std::size_t records) const;
  void count_bits(int number, const codec::KeptBits& kept);
  void on_encoded(Work& work, const Status& status);
  [[nodiscard]] Bytes most_in_pool() const;
  void report_if_whole(std::uint64_t number, Chunk& chunk);

  /// An encoder and memory that one worker uses again for each record.
  struct Worker {
    std::unique_ptr<codec::Encoder> encoder;
    ByteVector assembled;
    operations::Reducer reducer;
    ByteVector level;                // as it is put, of a field with over=
    std::vector<ByteVector> packed;  // pieces of arrays that are lent
  };

  OpenStream& stream_;
  Whole whole_;
  std::vector<Worker> workers_;
  std::map<std::uint64_t, Chunk> chunks_;  // owned here, until written
  BytePool pool_;                          // of records; workers use it too
  Bytes held_ = 0;                         // by records, without the pool
  int encoding_ = 0;                       // number of records on workers
  int staying_ = 0;                        // number of records that stay
  int moving_ = 0;                         // number of records that workers move
  Bytes moving_bytes_ = 0;                 // bytes of the records that workers move
};

}  // namespace tailrace::pipeline
