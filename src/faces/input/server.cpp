// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/server.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "formats/opening/open.hpp"
#include "ground/base/thread.hpp"
#include "ground/base/waiting.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::input {

namespace {

// How long a thread rests if there is nothing to do. Nobody rings a bell for it: the memory belongs to
// others.
constexpr std::chrono::microseconds shortest_rest{1000};
constexpr std::chrono::microseconds longest_rest{10'000};

}  // namespace

/// A server's work on one ring, until the ranks take the ring back.
class InputServer::Work final : public node::MemoryTaker::Work {
 public:
  Work(InputServer& server, std::shared_ptr<Ring> ring) : server_(server), ring_(std::move(ring)) {}
  ~Work() override { forget(); }

  std::optional<ByteVector> end(bool /*does_hear*/) override {
    {
      const std::lock_guard lock(server_.mutex_);
      ring_->is_ending = true;
      if (ring_->working > 0) return {};
    }
    forget();
    return Packer().put(ring_->counts.records.load()).put(ring_->counts.bytes.load()).take();
  }

 private:
  void forget() {
    const std::lock_guard lock(server_.mutex_);
    std::erase(server_.rings_, ring_);
  }

  InputServer& server_;
  std::shared_ptr<Ring> ring_;
};

InputServer::InputServer(session::Session& session) : session_(session) {
  session.serving().taker().on(node::Handed::input, [this](int, std::unique_ptr<node::NodeMemory> memory,
                                                           Unpacker) { return take(std::move(memory)); });
}

InputServer::~InputServer() { stop(); }

Result<std::unique_ptr<node::MemoryTaker::Work>> InputServer::take(std::unique_ptr<node::NodeMemory> memory) {
  auto ring = std::make_shared<Ring>();
  ring->memory = std::move(memory);
  const input::Ring definition(ring->memory->part(0), session_.board().transport());
  ring->files = files_of(definition.files());
  ring->loader = std::make_unique<Loader>(ring->memory->part(0), session_.board().transport(), ring->files,
                                          ring->counts);
  TR_TRY(start(1));
  bool are_several = false;
  {
    const std::lock_guard lock(mutex_);
    rings_.push_back(ring);
    are_several = has_several_streams();
  }
  if (are_several) (void)start(2);  // if it fails, one thread does all work
  changed_.notify_all();
  return std::unique_ptr<node::MemoryTaker::Work>(std::make_unique<Work>(*this, std::move(ring)));
}

/// Returns the files of a definition. Fields of one stream share them. Paths become absolute, because the
/// program may be in another directory than the server.
std::shared_ptr<Files> InputServer::files_of(const FilesDefinition& given) {
  const FilesDefinition definition = given.from_root();
  Packer packed;
  definition.pack(packed);
  const std::string key(reinterpret_cast<const char*>(packed.bytes().data()), packed.bytes().size());
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Files>& known = files_[key];
  std::shared_ptr<Files> files = known.lock();
  if (files == nullptr) {
    const std::shared_ptr<storage::Target> target(std::shared_ptr<void>(), &session_.streams_target());
    files = std::make_shared<Files>(
        definition,
        [target, cache = definition.cache](const std::string& path) {
          return sources::open(target, path, cache);
        },
        target.get());
    known = files;
  }
  std::erase_if(files_, [](const auto& each) { return each.second.expired(); });
  return files;
}

/// Starts as many threads as the server has for encoding, and at least `least`. Returns an error only if no
/// thread runs.
Status InputServer::start(int least) {
  const int wanted = std::max(session_.serving().encoding_threads(), least);
  while (std::ssize(threads_) < wanted) {
    Result<std::thread> thread = start_thread([this] { run(); });
    if (!thread.is_ok()) return threads_.empty() ? thread.status() : Status();
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::move(*thread));
  }
  return {};
}

void InputServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void InputServer::run() {
  DrawnScratch scratch(session_.memory().budget());
  GrowingPause rest(shortest_rest, longest_rest);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || !rings_.empty(); });
      if (is_stopping_) return;
    }
    bool has_worked = false;
    // If there is no memory, the thread rests and tries again.
    static_cast<void>(guarded([&] {
      has_worked = work_once(scratch);
      return Status();
    }));
    if (has_worked) {
      rest.moved();
      scratch.make_way();
      continue;
    }
    scratch.release();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, rest.next(), [this] { return is_stopping_; });
  }
}

/// Reads one record of the step that is needed first, of any ring. Returns false if there is none.
bool InputServer::work_once(DrawnScratch& scratch) {
  std::unique_lock lock(mutex_);
  // Go on to the next ring if another thread has claimed the record, or if there is no memory for it.
  std::vector<const Ring*> tried;
  for (;;) {
    Index ahead = 0;
    std::shared_ptr<Ring> ring = soonest(ahead, tried);
    if (ring == nullptr) return false;
    tried.push_back(ring.get());
    ++ring->working;
    lock.unlock();
    bool has_worked = false;
    static_cast<void>(guarded([&] {
      has_worked = ring->loader->work_once(ahead, scratch);
      return Status();
    }));
    lock.lock();
    --ring->working;
    // Release the ring under the lock: its owners are told that the memory is no longer mapped.
    ring = nullptr;
    if (has_worked) return true;
  }
}

/// Returns the ring whose next record is needed first, in `ahead` steps, among those that are not in `tried`;
/// or nullptr. The caller has the lock.
std::shared_ptr<InputServer::Ring> InputServer::soonest(Index& ahead,
                                                        const std::vector<const Ring*>& tried) const {
  std::shared_ptr<Ring> found;
  for (const auto& ring : rings_) {
    const bool is_passed =
        ring->is_ending || is_for_others(*ring) || std::ranges::count(tried, ring.get()) > 0;
    const std::optional<Index> needed = is_passed ? std::nullopt : ring->loader->ring().soonest();
    if (!needed || (found != nullptr && *needed >= ahead)) continue;
    found = ring;
    ahead = *needed;
  }
  return found;
}

/// Under the lock.
bool InputServer::has_several_streams() const {
  return std::ranges::any_of(rings_, [&](const auto& each) { return each->files != rings_.front()->files; });
}

/// True if all other threads work on the files of this ring's stream, and there are other streams: this
/// stream's storage may hang, so one thread is left to the others. The caller has the lock.
bool InputServer::is_for_others(const Ring& ring) const {
  std::ptrdiff_t working = 0;
  for (const auto& each : rings_) working += each->files == ring.files ? each->working : 0;
  return working + 1 >= std::ssize(threads_) && threads_.size() > 1 && has_several_streams();
}

}  // namespace tailrace::input
