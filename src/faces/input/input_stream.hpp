// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/input/field.hpp"
#include "faces/input/leads.hpp"
#include "faces/input/loader.hpp"
#include "faces/input/rings.hpp"
#include "faces/input/step_versions.hpp"
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
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  Status define(const std::string& field, const streams::PlacedLayout* layout, int type,
                const std::string& options);
  void begin(std::int64_t lead);
  void begin_at(double time);
  /// `shape` describes an array that is not allocated as the field was defined; nullptr: it is.
  void get(const std::string& field, void* data, const streams::ArrayShape* shape);
  Status end();
  Status seek(std::int64_t lead);
  Status close();
  /// Keeps an error for end(), like the errors of begin() and get().
  void latch(const Status& status);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  /// The leads of the files' steps that make the program's step, and the weight of the second one. No leads
  /// if the step may still come.
  struct Between {
    std::vector<std::int64_t> leads;
    double weight = 0;
  };

  InputStream(std::shared_ptr<files::Group> group, std::string name)
      : group_(std::move(group)), name_(std::move(name)), scratch_(group_->budget()) {}
  void begin_step(std::string_view function, std::string step, const Result<std::int64_t>& lead);
  [[nodiscard]] const TimeAxis& times() const { return rings_->files().time; }
  [[nodiscard]] std::string step_text() const { return "at " + step_name_; }
  comm::Verdict agree(const std::string& call, const Status& mine, ByteVector told = {},
                      ByteVector versions = {});
  [[nodiscard]] Field* field_called(const std::string& name);
  Status get_all(Field& field, std::byte* data, const Share& share);
  void copy_level(Field& field, Index level, const std::vector<Index>& slots, std::byte* data,
                  const Share& share);
  Status wait_for(Field& field, Index slot, Index level);
  void set_now(std::vector<std::int64_t> leads);
  void tell_gap();
  Status await_step();
  std::vector<Index> slots_of(Field& field);
  void take_counts();
  [[nodiscard]] bool follows() const { return rings_ != nullptr && rings_->files().follows; }
  /// Returns the counters of this input stream. Its key differs from that of an output stream with the same
  /// pattern; the report shows the first line of the key.
  [[nodiscard]] pipeline::Counters& counters() {
    return group_->service().session().statistics().streams[name_ + "\ninput"];
  }
  [[nodiscard]] std::int64_t now() const { return group_->line().now(); }

  const std::shared_ptr<files::Group> group_;
  const std::string name_;  // the pattern
  std::uint64_t epoch_ = 0;
  std::int64_t told_records_ = 0;  // the part of the rings' counts already in the counters
  std::int64_t told_bytes_ = 0;
  std::vector<std::unique_ptr<Field>> fields_;
  std::unordered_map<std::string, Field*> by_name_;
  std::unique_ptr<Rings> rings_;  // behind fields_, which its thread uses; null until the files are known
  std::int64_t timeout_ = -1;     // nanoseconds; -1: none
  std::int64_t began_ = 0;        // time at which the step was begun
  DrawnScratch scratch_;          // for the program's thread
  ByteVector between_;
  Status latched_;
  bool in_step_ = false;
  std::int64_t step_ = 0;
  std::int64_t operation_ = 0;
  std::int64_t lead_ = 0;
  std::string step_name_;                 // "lead 3600 s" or "time 0.5 s"
  std::optional<std::int64_t> told_gap_;  // the step behind the last gap that was logged
  std::optional<Between> now_;            // nothing: the step does not exist
  StepVersions versions_;
  /// Nodes have got different steps, so this one may not know all steps.
  bool disagreed_ = false;
};

}  // namespace tailrace::input
