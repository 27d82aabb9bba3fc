// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/input/loader.hpp"
#include "ground/node/handed_memory.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::input {

/// Reads records on a server, into the rings of its node: compute ranks hand it the memory of their rings.
/// Its threads work as long as there is any ring.
class InputServer {
 public:
  /// Accepts rings from now on. `session` is a server's, and must outlive this.
  explicit InputServer(session::Session& session);
  ~InputServer();
  InputServer(const InputServer&) = delete;
  InputServer& operator=(const InputServer&) = delete;

 private:
  /// A ring that compute ranks have handed over.
  struct Ring {
    std::unique_ptr<node::NodeMemory> memory;
    std::shared_ptr<Files> files;
    LoadCounts counts;
    std::unique_ptr<Loader> loader;
    int working = 0;  // number of threads that use it
    bool is_ending = false;
  };
  class Work;

  Result<std::unique_ptr<node::MemoryTaker::Work>> take(std::unique_ptr<node::NodeMemory> memory);
  std::shared_ptr<Files> files_of(const FilesDefinition& given);
  Status start(int least);
  void stop();
  void run();
  bool work_once(DrawnScratch& scratch);
  std::shared_ptr<Ring> soonest(Index& ahead, const std::vector<const Ring*>& tried) const;
  [[nodiscard]] bool is_for_others(const Ring& ring) const;
  [[nodiscard]] bool has_several_streams() const;

  session::Session& session_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Ring>> rings_;
  std::map<std::string, std::weak_ptr<Files>> files_;  // key: packed definition
  std::vector<std::thread> threads_;
  bool is_stopping_ = false;
};

}  // namespace tailrace::input
