// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "stages/open_stream.hpp"
#include "stages/record_pool.hpp"

namespace tailrace::stages {

/// One rank's share of a record: in the rank's lane, or in a message of the server that reads the lane.
struct Piece {
  int rank = 0;
  std::uint64_t number = 0;  // descriptor, for pieces in a lane
  bool in_lane = false;
  ByteVector bytes;  // for pieces that arrived as a message

  [[nodiscard]] std::span<const std::byte> content(const Context& context, ByteVector& scratch) const {
    return in_lane ? context.lanes.at(rank).reader().bytes(number, scratch)
                   : std::span<const std::byte>(bytes);
  }
};
/// Says that pieces were used up: their room in the lanes is free again.
void use_up(Context& context, std::span<const Piece> pieces);

/// One record with all its pieces: what encoding takes.
struct Gathered {
  std::uint64_t number = 0;
  SequenceEntry entry;
  std::int64_t operation = 0;  // number within its step
  bool poisoned = false;
  std::vector<Piece> pieces;
};

/// One chunk whose size the root was told: what encoding hands on.
struct Encoded {
  std::int64_t step = 0;
  std::vector<ByteVector> records;  // in put order

  [[nodiscard]] Bytes size() const {
    Bytes size = 0;
    for (const ByteVector& record : records) size += static_cast<Bytes>(record.size());
    return size;
  }
};

/// The third stage. It takes records with all their pieces (Gathered), assembles and encodes them on workers,
/// and tells the root the size of each chunk once all its records are encoded. It keeps the chunks until the
/// root has placed them, and then hands them on (Encoded). Their bytes count against the workspace until they
/// are written.
class Encoding {
 public:
  explicit Encoding(OpenStream& stream);

  /// Notes that the put order has another record of a chunk that this server owns.
  void announce(const SequenceEntry& record);
  /// Notes that the put order has no more records of a chunk, whoever owns it.
  void close_chunk(std::uint64_t chunk);
  /// Returns true if the record may be taken now: there is workspace for it, or no older chunk whose writing
  /// would free some, and a worker.
  [[nodiscard]] bool has_room(const SequenceEntry& record) const;
  void take(Gathered gathered);
  /// Hands on a chunk that was reported. Its bytes still count.
  [[nodiscard]] Encoded hand_on(std::uint64_t chunk);
  /// Says that a chunk was written or dropped, and gives back the memory of its records.
  void forget(std::uint64_t chunk, Encoded encoded);
  /// Frees memory that waits for records if it is more than the stream's share of the workspace, which
  /// shrinks when a stream is added.
  void shrink_pool();
  /// Returns the size of the memory that waits for records.
  [[nodiscard]] Bytes kept() const { return pool_.size(); }

 private:
  /// A record from the worker on.
  struct Work {
    Gathered record;
    ByteVector bytes;
    std::vector<Bytes> parts{};
    int worker = 0;
    std::int64_t began = 0, assemble = 0, encode = 0;  // time and durations
  };
  struct Chunk {
    std::int64_t step = 0;
    std::vector<std::shared_ptr<Work>> works;
    int open = 0;  // records not encoded yet
    bool closed = false;
    bool poisoned = false;
    Status status;
    Bytes held = 0;  // bytes that count against the workspace
  };

  using Pieces = std::span<const std::span<const std::byte>>;
  Status assemble_and_encode(int worker, Work& work);
  Status encode(Work& work, std::span<std::byte> values);
  std::span<std::byte> assemble(const Work& work, Pieces pieces);
  void assemble_plain(Work& work, codec::PlainValues as, Pieces pieces);
  void count(const Work& work);
  void on_encoded(Work& work, const Status& status);
  [[nodiscard]] Bytes most_in_pool() const;
  void report_if_whole(std::uint64_t number, Chunk& chunk);

  OpenStream& stream_;
  std::vector<std::unique_ptr<codec::Encoder>> encoders_;  // per worker
  std::vector<ByteVector> assembled_;                      // per worker, reused
  std::map<std::uint64_t, Chunk> chunks_;                  // owned here, until written
  RecordPool pool_;                                        // of plain records
  Bytes held_ = 0;                                         // by records, without the pool
  int encoding_ = 0;                                       // number of records on workers
};

}  // namespace tailrace::stages
