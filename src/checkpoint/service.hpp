// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "session/session.hpp"

namespace tailrace::checkpoint {

/// The parts of the session that checkpoints use.
class Service {
 public:
  explicit Service(session::Session& session) : session_(session) {}

  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] storage::Target& target() { return session_.target(); }
  [[nodiscard]] int rank() const { return session_.rank(); }
  [[nodiscard]] int size() const { return session_.ranks(); }
  [[nodiscard]] std::int64_t now() { return session_.line().now(); }
  [[nodiscard]] executor::Threads& threads() { return session_.threads(); }

 private:
  session::Session& session_;
};

}  // namespace tailrace::checkpoint
