// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mutex>
#include <vector>

#include "engine/exchange/progress_engine.hpp"
#include "engine/session/session.hpp"
#include "ground/journal/journal.hpp"

namespace tailrace::files {

/// The things that all collective files of one process share.
class Service {
 public:
  explicit Service(session::Session& session)
      : session_(session), progress_(session.board(), session.settings().io_threads > 0) {}
  /// Blocks until all queued jobs are done.
  ~Service() { threads().drain(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] const Settings& settings() const { return session_.settings(); }
  [[nodiscard]] node::Budget& budget() { return session_.memory().budget(); }
  [[nodiscard]] storage::Target& target() { return session_.target(); }
  [[nodiscard]] executor::Threads& threads() { return session_.threads(); }
  /// Returns the journals, which get bytes before the program writes over them.
  [[nodiscard]] journal::Journals& journals() { return journals_; }

  /// Returns the progress engine, which moves on the requests of shared files and global arrays to other
  /// nodes.
  [[nodiscard]] exchange::ProgressEngine& progress() { return progress_; }

  /// A rank reads its rows of an array straight into the array only if they are at least this long on
  /// average. With shorter rows, the calls of the system cost more than a second copy of the bytes. Tests set
  /// it lower, before files are opened.
  [[nodiscard]] Bytes shortest_own_row() const { return shortest_own_row_; }
  void set_shortest_own_row(Bytes bytes) { shortest_own_row_ = bytes; }

  /// Returns a buffer of `bytes`, if possible one of give_back(): fresh memory costs several times as much as
  /// a copy. Any thread may call it.
  ByteVector take_buffer(Bytes bytes) {
    ByteVector buffer;
    {
      const std::lock_guard lock(mutex_);
      if (!buffers_.empty()) {
        buffer = std::move(buffers_.back());
        buffers_.pop_back();
      }
    }
    buffer.resize(static_cast<std::size_t>(bytes));
    return buffer;
  }
  void give_back(ByteVector buffer) {
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(buffer));
  }

 private:
  session::Session& session_;
  journal::Journals journals_;
  Bytes shortest_own_row_ = Bytes{16} << 10;
  std::mutex mutex_;
  std::vector<ByteVector> buffers_;
  exchange::ProgressEngine progress_;  // the last: its thread uses the members above
};

}  // namespace tailrace::files
