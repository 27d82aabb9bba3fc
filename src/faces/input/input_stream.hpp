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
#include "faces/streams/definition/placed_layout.hpp"

namespace tailrace::input {

/// A stream that is read, on a compute rank. include/tailrace.h has the contract of each call. The decoded
/// records of the next steps lie in memory that the ranks of a node share. I/O threads of the ranks, or a
/// server, read ahead; a rank that needs a record reads it itself if nobody has begun to.
class InputStream final {
 public:
  /// Collective over the compute ranks, those of `group`. Blocks until the first rank has found the files.
  /// Without `open`, files are opened with sources::open. Returns the same Status on every rank.
  static Result<std::unique_ptr<InputStream>> open(const std::shared_ptr<files::Group>& group,
                                                   const std::string& pattern, const std::string& options,
                                                   Opener open = nullptr);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  Status define(const std::string& field, const streams::PlacedLayout* layout, int type,
                const std::string& options);
  void begin(std::int64_t lead);
  /// `shape` describes an array that is not allocated as the field was defined; nullptr: it is.
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
    Share share;  // for arrays allocated as defined
    /// The share for the last array that came with a shape, and its shape.
    std::vector<Index> last_extents;
    std::vector<Bytes> last_strides;
    std::optional<Share> last_share;
    layout::Box cut;
    std::unique_ptr<node::Draw> drawn;  // on the first rank of the node
    std::unique_ptr<node::NodeMemory> memory;
    std::unique_ptr<Loader> loader;  // null: the node needs no part of the field
    bool is_served = false;          // a server of the node reads ahead
    /// On the first rank of the node: number of the memory that was handed to a server.
    std::optional<std::uint64_t> given;
  };
  /// The leads of the files' steps that make the program's step, and the weight of the second one. No leads
  /// if the step may still come.
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
  /// Returns the counters of this input stream. Its key differs from that of an output stream with the same
  /// pattern; the report shows the first line of the key.
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
  std::int64_t told_records_ = 0;  // the part of counts_ already in the counters
  std::int64_t told_bytes_ = 0;
  std::vector<std::unique_ptr<Field>> fields_;
  std::unordered_map<std::string, Field*> by_name_;
  executor::Key key_ = 0;               // the thread that reads ahead
  std::mutex mutex_;                    // guards fields_: that thread reads, define() writes
  std::atomic<bool> is_busy_{false};    // that thread has a job
  std::atomic<std::int64_t> asked_{0};  // number of times it was asked to look
  std::atomic<bool> is_closed_{false};
  std::mutex look_mutex_;
  std::unique_ptr<Follower> follower_;  // with follow=on; look_mutex_ guards it
  std::int64_t timeout_ = -1;           // nanoseconds; -1: none
  std::int64_t began_ = 0;              // time at which the step was begun
  DrawnScratch scratch_;                // for the program's thread
  DrawnScratch thread_scratch_;
  ByteVector between_;
  Status latched_;
  bool in_step_ = false;
  std::int64_t step_ = 0;
  std::int64_t operation_ = 0;
  std::int64_t lead_ = 0;
  std::optional<std::int64_t> told_gap_;  // the step behind the last gap that was logged
  std::optional<Between> now_;            // nothing: the step does not exist
  /// Versions of the files' steps of which this rank has got values, by lead.
  std::map<std::int64_t, std::uint64_t> versions_;
  /// Nodes have got different steps, so this one may not know all steps.
  bool disagreed_ = false;
};

}  // namespace tailrace::input
