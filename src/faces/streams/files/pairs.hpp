// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/ledger.hpp"
#include "engine/pipeline/messages.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/reindex.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/index/index.hpp"
#include "formats/listings/listings.hpp"
#include "formats/references/pace.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::streams {

/// A pair of data file and index that steps may go to.
struct OpenPair {
  std::shared_ptr<void> lock;
  IndexWriter index;
  bool again = false;                        // it is the second pair of its name
  bool closed = false;                       // no step will follow
  references::Pace references;               // of the reference file, if the stream asks for one
  std::vector<listings::Writer> listings{};  // one for each that the stream asks for
};

/// A pair that is finished and not announced.
struct WholePair {
  std::shared_ptr<void> lock;
  bool is_new = false;  // nobody can have heard of the file
  bool tried = false;   // an earlier try to announce it may have done a part
};

/// Returns where the data of a pair are written to.
std::string written_to(const std::string& path, bool again);

/// Begins the pairs of one stream, empty or continued from an earlier run, and finishes them. Calls for
/// different files may run side by side. `opening` must outlive it.
class Pairs {
 public:
  /// The part of the format that files hold beside records (codec::Codec). Formats without it leave it empty.
  struct Frame {
    ByteVector head;
    std::optional<codec::FixedPlaces> places;
  };
  Pairs(const pipeline::Opening& opening, StreamRequest request, Uuid run, std::optional<Resuming> resuming,
        std::shared_ptr<storage::Target> target, Frame frame, std::vector<LeftBehind> left_behind);

  [[nodiscard]] const StreamRequest& request() const { return request_; }
  [[nodiscard]] storage::Target& target() const { return *target_; }
  /// Do what pipeline::Ledger says of them.
  [[nodiscard]] Result<std::string> path_of(std::int64_t lead) const;
  [[nodiscard]] const TimeAxis& times() const { return header_.time; }
  [[nodiscard]] const std::vector<std::string>& left_open() const { return left_open_; }
  /// Returns the files of left_open() that existing=continue has found.
  [[nodiscard]] const std::vector<LeftBehind>& left_behind() const { return left_behind_; }
  [[nodiscard]] bool has_our_fields(const IndexContents& contents) const {
    return contents.header.fields == header_.fields;
  }

  struct Beginning {
    pipeline::Begun begun;
    std::optional<OpenPair> pair;  // none if it was finished already
  };
  /// Creates or continues the pair for the step with this lead. Its directory entries are durable.
  Result<Beginning> begin(const std::string& path, std::int64_t lead, Bytes expected);
  /// Ends a pair to which no step comes any more. Returns none if it has no steps: nothing is left to
  /// announce.
  Result<std::optional<WholePair>> finish(const std::string& path, OpenPair& pair);
  /// Finishes a pair of left_open() that was not begun: does everything that the killed run, or the server
  /// that is replaced, had not done yet. Returns what finish() returns.
  Result<std::optional<WholePair>> finish_left_open(const std::string& path);

 private:
  enum class FoundAlone {
    none,   // nothing to go on with
    begun,  // an interrupted run has begun it, and it has no records: it is written again
    whole
  };
  void note_left_open();
  Result<std::optional<WholePair>> write_alone(const std::string& path);
  Result<bool> is_written_alone(const std::string& path);
  Result<FoundAlone> find_alone(const std::string& data);
  /// Returns true if another server has told the verdict of steps of this stream.
  [[nodiscard]] bool takes_over_steps() const {
    return opening_.is_taken_over && opening_.first_step > opening_.begins_with;
  }
  [[nodiscard]] bool has_decided_steps(const std::string& path) const;
  [[nodiscard]] bool goes_on_with_others() const { return request_.options.existing == Existing::resume; }
  Result<std::shared_ptr<void>> lock_pair(const std::string& path);
  Status wait_for_space(const std::string& path, Bytes expected);
  Result<std::optional<Pair>> taken_over_pair(const std::string& path);
  Result<Beginning> take_over(const std::string& path, const Pair& pair, std::shared_ptr<void> lock);
  Result<OpenPair> open_file(const std::string& path, std::int64_t lead);
  Result<bool> take_second_alone(const std::string& path);
  Result<bool> is_begun_only(const std::string& path, bool indexed);
  Result<FoundSteps> find_own_steps(const std::string& path);
  Result<bool> index_again(const std::string& path);
  Status check_ours(const std::string& path);
  Status check_listings(const std::string& path);
  Result<OpenPair> begin_anew(const std::string& path);
  Result<bool> is_begun_by_others(const std::string& path);
  Result<IndexWriter> continue_index(const std::string& path, std::int64_t lead);
  Result<std::optional<Pair>> find_left_open(const std::string& path, bool goes_on);
  Status check_is_later(const std::string& path, bool indexed) const;
  Result<OpenPair> go_on_with(const std::string& path);
  Result<OpenPair> cut_back(const std::string& path);
  [[nodiscard]] bool is_left_behind(const std::string& path) const;
  Result<std::optional<WholePair>> finish_left_behind(const std::string& path);
  Result<OpenPair> reopen(const std::string& path, bool again, std::optional<std::int64_t> through_lead = {});
  Result<bool> is_settled(const std::string& path);
  Status put_in_place(const std::string& path);
  Status begin_data(const std::string& path, OpenPair& pair);
  Status end_data(const std::string& data);
  Status remove_empty(const std::string& path, OpenPair& file);

  const pipeline::Opening& opening_;
  StreamRequest request_;
  std::optional<Resuming> resuming_;
  std::shared_ptr<storage::Target> target_;
  Frame frame_;
  IndexHeader header_;
  std::vector<LeftBehind> left_behind_;
  std::vector<std::string> left_open_;
  bool is_alone_ = false;  // no field has time: the stream has one file, and no step comes to it
};

}  // namespace tailrace::streams
