// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/input/files.hpp"
#include "faces/input/loader.hpp"
#include "faces/input/request.hpp"
#include "faces/input/share.hpp"
#include "faces/streams/stream.hpp"

namespace tailrace::input {

/// A stream that is read, on a compute rank. include/tailrace.h has the contract of each call. On each node
/// the decoded records of the next steps lie in memory that its ranks share. I/O threads of the ranks read
/// ahead; a rank that needs a record that nobody has begun reads it itself.
class InputStream final {
 public:
  /// Collective over the compute ranks, which `group` has. `open` opens files; without it sources::open does.
  /// Returns the same Status on every rank.
  static Result<std::unique_ptr<InputStream>> open(const std::shared_ptr<files::Group>& group,
                                                   const std::string& pattern, const std::string& options,
                                                   Opener open = nullptr);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  Status define(const std::string& field, const streams::PlacedLayout* layout, int type,
                const std::string& options);
  void begin(std::int64_t lead);
  /// `shape` describes an array that is not allocated as defined; nullptr: it is.
  void get(const std::string& field, void* data, const streams::ArrayShape* shape);
  Status end();
  Status seek(std::int64_t lead);
  Status close();
  /// Keeps an error for end(), like the errors of begin() and get().
  void latch(const Status& status);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Field {
    Field(FieldRequest given, const streams::PlacedLayout& placed)
        : request(std::move(given)), layout(placed.layout), halo(placed.halo) {
      request.allocation.halo = halo;
    }
    FieldRequest request;
    const layout::Layout layout;
    const std::vector<Index> halo;
    Share share;                      // of arrays allocated as defined
    std::vector<Index> last_extents;  // that of arrays handed over with their shape, kept
    std::vector<Bytes> last_strides;
    std::optional<Share> last_share;
    layout::Box cut;
    std::unique_ptr<node::Draw> drawn;  // on the first rank of the node
    std::unique_ptr<node::NodeMemory> memory;
    std::unique_ptr<Loader> loader;      // none if the node needs nothing of the field
    bool is_served = false;              // a server of the node reads ahead
    std::optional<std::uint64_t> given;  // on the first rank of the node: the server's memory
  };
  /// The steps of the files that make the step of the program, and the weight of the second one. None if they
  /// may still come.
  struct Between {
    std::vector<std::int64_t> leads;
    double weight = 0;
  };

  InputStream(std::shared_ptr<files::Group> group, std::string name, Opener open)
      : group_(std::move(group)),
        name_(std::move(name)),
        open_(std::move(open)),
        scratch_(group_->budget()),
        thread_scratch_(group_->budget()) {}
  [[nodiscard]] std::string step_text() const;
  comm::Verdict agree(const std::string& call, const Status& mine, ByteVector told = {},
                      ByteVector versions = {});
  Result<layout::Box> agree_on_box(const Field& field, const std::string& call);
  Status make_ring(const FieldDefinition& definition, const std::string& call, Field& field);
  Result<const Share*> share_of(Field& field, const streams::ArrayShape* shape) const;
  [[nodiscard]] Field* field_called(const std::string& name);
  Status get_all(Field& field, std::byte* data, const Share& share);
  void copy_level(Field& field, Index level, const std::vector<Index>& slots, std::byte* data,
                  const Share& share);
  Status wait_for(Field& field, Index slot, Index level);
  void set_now(std::vector<std::int64_t> leads);
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::int64_t lead) const;
  [[nodiscard]] Ring* any_ring() const;
  Status begin_rings();
  void tell_gap();
  Status await_step();
  void renew_step();
  void forget_steps(const std::vector<std::int64_t>& gone);
  Status note_version(std::int64_t lead, std::uint64_t version, const Field& field);
  [[nodiscard]] ByteVector versions_told();
  void look_for_steps(Ring& ring);
  bool follow();
  [[nodiscard]] std::vector<Loader*> loaders(bool served_too);
  [[nodiscard]] std::optional<int> serving_rank() const;
  void hand_over(Field& field);
  void take_back(Field& field);
  std::vector<Index> slots_of(Field& field);
  bool has_work_ahead();
  void read_ahead();
  void work();
  void take_counts();
  /// A stream that is written may have the same pattern. The report shows the first line of the name.
  [[nodiscard]] pipeline::Counters& counters() {
    return group_->service().session().statistics().streams[name_ + "\ninput"];
  }
  [[nodiscard]] std::int64_t now() const { return group_->line().now(); }

  const std::shared_ptr<files::Group> group_;
  const std::string name_;  // the pattern
  Opener open_;
  std::uint64_t epoch_ = 0;
  FilesDefinition files_;
  std::shared_ptr<Files> opened_;
  LoadCounts counts_;
  std::int64_t told_records_ = 0;  // those of counts_ that are in the counters
  std::int64_t told_bytes_ = 0;
  std::vector<std::unique_ptr<Field>> fields_;
  std::unordered_map<std::string, Field*> by_name_;
  executor::Key key_ = 0;               // of the thread that reads ahead
  std::mutex mutex_;                    // guards fields_ between that thread and define()
  std::atomic<bool> is_busy_{false};    // that thread has a job
  std::atomic<std::int64_t> asked_{0};  // how often it was asked to look
  std::atomic<bool> is_closed_{false};
  std::mutex look_mutex_;
  std::unique_ptr<Follower> follower_;  // with follow=on; its mutex guards it
  std::int64_t timeout_ = -1;           // nanoseconds; -1: none
  std::int64_t began_ = 0;              // when the step was begun
  DrawnScratch scratch_;                // of the program's thread
  DrawnScratch thread_scratch_;
  ByteVector between_;
  Status latched_;
  bool in_step_ = false;
  std::int64_t step_ = 0;
  std::int64_t operation_ = 0;
  std::int64_t lead_ = 0;
  std::optional<std::int64_t> told_gap_;            // the step behind the last gap that was told
  std::optional<Between> now_;                      // nothing if there is no such step
  std::map<std::int64_t, std::uint64_t> versions_;  // of the files' steps that this rank has got, by lead
  bool disagreed_ = false;                          // nodes have got different steps: this one may lack some
};

}  // namespace tailrace::input
