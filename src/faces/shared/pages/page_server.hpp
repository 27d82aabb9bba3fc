// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "engine/exchange/progress_engine.hpp"
#include "engine/session/session.hpp"
#include "ground/executor/threads.hpp"
#include "ground/node/handed_memory.hpp"

namespace tailrace::shared {

struct ServerPlace;

/// A server's part in shared files and global arrays. The compute ranks of its node hand the server the
/// memory in which their pages lie. The server then answers other nodes in their place, while they compute or
/// are inside MPI.
class PageServer {
 public:
  /// Local. `session` is that of a server that has not begun to serve; it must outlive the PageServer. With
  /// `has_threads` threads of the PageServer's own wait for storage, whatever TAILRACE_IO_THREADS says.
  /// Without, as in simulations, which have one thread, the server's loop waits for storage.
  static Result<std::unique_ptr<PageServer>> create(session::Session& session, bool has_threads = true);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

 private:
  [[nodiscard]] ServerPlace place();
  using Work = node::MemoryTaker::Work;
  PageServer(session::Session& session, std::unique_ptr<executor::Threads> threads);
  Result<std::unique_ptr<Work>> serve_elements(std::unique_ptr<node::NodeMemory> memory, Unpacker in);
  Result<std::unique_ptr<Work>> serve_pages(std::unique_ptr<node::NodeMemory> memory, Unpacker in);

  session::Session& session_;
  std::unique_ptr<executor::Threads> threads_;  // for jobs that wait for storage
  exchange::ProgressEngine progress_;
};

}  // namespace tailrace::shared
