// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/server/encoding.hpp"
#include "engine/pipeline/server/repeated_bytes.hpp"

namespace tailrace::pipeline {

/// The last stage of a stream whose method is collective (Method::is_collective), in place of Writing. The
/// root tells every server the same calls (Message::call) with the server's own part of each. A server makes
/// a call when its turn has come, and tells the root what became of it. It keeps the chunks of a round until
/// the root says that the round is over: rounds may be made again. With Method::appends it has turns of its
/// own, and keeps their chunks until they are written.
class CollectiveWriting {
 public:
  CollectiveWriting(OpenStream& stream, Encoding& encoding) : stream_(stream), encoding_(encoding) {}

  /// Takes the next call, for which its turn may have come already.
  void on_call(Unpacker& in);
  [[nodiscard]] bool knows(std::int64_t call) const { return calls_.count(call) != 0; }
  /// Makes the call together with all other servers. May be called again for the same call.
  void make(std::int64_t call);
  /// Gives the chunks of a call back.
  void on_over(Unpacker& in);

 private:
  struct Chunk {
    std::uint64_t number = 0;
    Encoded encoded;
    std::vector<Bytes> offsets;  // of the records
  };
  /// Bytes of an append that one call of the MPI can write.
  struct Piece {
    Bytes offset = 0;
    comm::CollectiveFiles::Run::Parts parts;
  };
  struct Call {
    CallKind kind = CallKind::open;
    std::string path;
    std::int64_t step = 0;
    int calls = 0;        // of MPI, in which all servers write
    Bytes committed = 0;  // round, append: all bytes before this offset are durable
    Bytes place = 0;      // seek: where to
    std::vector<Chunk> chunks;
    std::vector<codec::Patch> patches;        // sync: what the step holds beside its records
    std::unique_ptr<RepeatedBytes> repeated;  // the patches' bytes
    bool is_patching = false;                 // sync: the write of the patches is queued, or there is none
    Status patched = {};                      // sync: what became of it
    std::int64_t begin = 0;                   // when this server's part began
    // append:
    std::vector<Piece> pieces;
    Bytes size = 0;
    int not_begun = 0;  // pieces
    int under_way = 0;
    Status begun = {};
    Status written = {};
    bool is_counted = false;   // storage knows of the bytes
    bool is_refused = false;   // the root knows that it has not begun
    bool is_given_up = false;  // the root does not wait for the chunks any more
  };
  using CallPointer = std::shared_ptr<Call>;
  /// This server's own descriptor of a file that is open. It is opened before any server writes, so that
  /// fsync tells of every write-back that fails on this node.
  using OwnFile = std::shared_ptr<std::unique_ptr<storage::File>>;

  /// Returns the name by which the servers open a file together.
  [[nodiscard]] std::string name_of(const std::string& path) const;
  void open(std::int64_t number, const CallPointer& call);
  void write(std::int64_t number, const CallPointer& call);
  void write_patches(const CallPointer& call);
  void append(std::int64_t number, const CallPointer& call);
  void on_begun(std::int64_t number, const CallPointer& call, const Status& status);
  void on_piece(std::int64_t number, const CallPointer& call, const Piece& piece, const Status& status);
  void count_append(std::int64_t number, const CallPointer& call);
  void end_append(std::int64_t number, const CallPointer& call);
  void seek(std::int64_t number, const CallPointer& call);
  void sync(std::int64_t number, const CallPointer& call);
  void close(std::int64_t number, const CallPointer& call);
  void say(std::int64_t number, const Status& status);

  OpenStream& stream_;
  Encoding& encoding_;
  std::map<std::int64_t, CallPointer> calls_;
  std::map<std::string, OwnFile> files_;
  // By file: the last step before whose first write this server looked at the file, and found it whole.
  std::map<std::string, std::int64_t> written_;
};

}  // namespace tailrace::pipeline
