// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "executor/ordered_pool.hpp"
#include "session/session.hpp"

namespace tailrace::checkpoint {

/// What all checkpoints of one process share: the thread that writes.
class Service {
 public:
  explicit Service(session::Session& session)
      : session_(session), pool_(session.settings().io_threads > 0 ? 1 : 0) {}

  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] storage::Target& target() { return session_.target(); }
  [[nodiscard]] int rank() const { return session_.rank(); }
  [[nodiscard]] int size() const { return session_.ranks(); }
  [[nodiscard]] std::int64_t now() { return session_.line().now(); }
  [[nodiscard]] executor::OrderedPool& pool() { return pool_; }
  executor::OrderedPool::Key new_key() { return next_key_++; }

 private:
  session::Session& session_;
  executor::OrderedPool pool_;
  executor::OrderedPool::Key next_key_ = 0;
};

}  // namespace tailrace::checkpoint
