// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ground/comm/collective/collective_files.hpp"
#include "ground/sim/disk.hpp"
#include "ground/sim/scheduler.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sim {

class Meetings;

/// One simulated server's end of the files that all servers write together. Its bytes go to its own storage,
/// whose faults thus strike here, too.
class SimCollectiveFiles final : public comm::CollectiveFiles {
 public:
  SimCollectiveFiles(Meetings& meetings, std::size_t process, std::shared_ptr<storage::Target> target,
                     std::function<void()> wake)
      : meetings_(meetings), process_(process), target_(std::move(target)), wake_(std::move(wake)) {}
  /// Calls that were not made never are: the server is gone.
  ~SimCollectiveFiles() override;
  SimCollectiveFiles(const SimCollectiveFiles&) = delete;
  SimCollectiveFiles& operator=(const SimCollectiveFiles&) = delete;
  [[nodiscard]] bool needs_files_of_system() const override { return false; }
  void open(std::string path, comm::Hints hints, Own own, Opened opened) override;
  void write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) override;
  void append(std::string path, Bytes offset, Run::Parts parts, Own own, Done started, Done done) override;
  void seek(std::string path, Bytes offset, Done done) override;
  void try_appends(std::string path, Done done) override;
  void sync(std::string path, Own own, Done done) override;
  void close(std::string path, Own own, Done done) override;
  bool poll() override;

 private:
  friend class Meetings;
  struct Call {
    std::string what;  // the same on all servers that meet
    std::function<Status()> own;
    std::function<Status(bool all_are_ready)> part;  // the call itself; `own` may have failed on some servers
    Done done;
    Status status{};
    std::string path{};                // open alone
    std::shared_ptr<bool> is_open{};   // open alone: whether it is, once the call is made
    std::function<Status()> append{};  // append alone, which is not made together: begins the write
  };
  /// A write at the shared file pointer that is under way.
  struct Append {
    std::function<Status()> write;
    Done done;
  };
  void begin_append();
  void end_append();
  void end_appends();
  Status write_now(const std::string& path, const std::vector<Run>& runs) const;

  Meetings& meetings_;
  const std::size_t process_;
  const std::shared_ptr<storage::Target> target_;
  const std::function<void()> wake_;
  std::deque<std::shared_ptr<Call>> calls_;  // not made yet
  std::deque<std::pair<Done, Status>> made_;
  std::map<std::string, std::unique_ptr<storage::File>> files_;
  std::deque<Append> appends_;
  bool is_appending_ = false;  // the moment at which the next append begins has been chosen
};

/// Where the simulated servers of a job meet for their calls. A call is made once all of them have come to
/// it; each makes its part at a moment of its own. With costs, the servers pass a barrier before and behind
/// their parts. Throws if they have come to different calls: real ones
/// would wait for ever, or write anything.
class Meetings {
 public:
  /// `disk` is nullptr if storage takes no time.
  Meetings(Scheduler& scheduler, std::size_t processes, std::shared_ptr<Disk> disk)
      : scheduler_(scheduler), disk_(std::move(disk)), present_(processes, nullptr) {}
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;
  /// Returns the end of one server. There is one at a time for each.
  std::unique_ptr<comm::CollectiveFiles> join(std::size_t process, std::shared_ptr<storage::Target> target,
                                              std::function<void()> wake);
  /// Counts the calls that were made.
  [[nodiscard]] std::int64_t made() const { return made_; }
  /// Says that the MPI's shared file pointers do not work.
  void break_pointers() { has_pointers_ = false; }

 private:
  friend class SimCollectiveFiles;
  using Part = std::shared_ptr<SimCollectiveFiles::Call>;
  void look();
  void make_own_parts();
  void make_call();
  void tell();
  void each_at_its_moment(const std::function<void(SimCollectiveFiles&, SimCollectiveFiles::Call&)>& part,
                          void (Meetings::*then)());
  [[nodiscard]] Nanoseconds barrier() const;

  Scheduler& scheduler_;
  const std::shared_ptr<Disk> disk_;
  std::vector<SimCollectiveFiles*> present_;  // by server
  std::int64_t meeting_ = 0;                  // counts the ends that have gone: their meeting is over
  bool is_meeting_ = false;
  std::int64_t made_ = 0;
  bool has_pointers_ = true;
  std::map<std::string, Bytes> pointers_;  // of the files that are open
};

}  // namespace tailrace::sim
