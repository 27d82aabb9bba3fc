// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "faces/checkpoint/context.hpp"
#include "faces/files/service.hpp"
#include "faces/restart/recorded.hpp"
#include "faces/restart/recorded_files.hpp"
#include "faces/streams/stream.hpp"
#include "faces/unformatted/record_file.hpp"
#include "ground/journal/closed_files.hpp"

namespace tailrace::restart {

/// A collective file that is open.
struct OpenFile {
  files::File* file = nullptr;
  unformatted::RecordFile* records = nullptr;  // of an unformatted Fortran file
  bool temporary = false;                      // closing removes it
};

/// A formatted Fortran file that may be written. Fortran's runtime library on the first rank has it open.
struct OpenText {
  std::string path;
  /// First rank only. Hands all bytes of the file to the system, and returns where the file stands, or
  /// nothing if the program has not written to it. With Overwritten::refuse, returns Code::state if a later
  /// run could not bring the file back there.
  std::function<Result<std::optional<journal::Position>>(journal::Overwritten)> position;
  /// First rank only. Returns the file, which stays open as long as the caller holds it, to make it durable.
  /// Returns nullptr before position() was called.
  std::function<std::shared_ptr<storage::File>()> hold;
};

/// The program's outputs, each kind in the order of opening, which is the same on every rank.
struct Open {
  std::vector<const streams::Stream*> streams;
  std::vector<OpenFile> files;
  std::vector<OpenText> texts;
  std::vector<SharedFlush> shared = {};  // of which this rank tells the others
  /// Has undo files lead back to the last flush of each shared file with safety=, for this checkpoint. Every
  /// rank calls it. Empty: there is none.
  std::function<Status(const std::string& checkpoint)> keep_shared = {};
};

/// The outputs of a session as its checkpoints see them: the open ones, and those that the loaded checkpoint
/// has recorded and the program has not opened yet.
class Outputs final : public checkpoint::Outputs {
 public:
  /// `open` returns the outputs that are open at the moment.
  Outputs(files::Service& service, std::function<Open()> open) : service_(service), open_(std::move(open)) {}

  Result<Standing> stand(const std::string& checkpoint, journal::Overwritten overwritten) override;
  [[nodiscard]] Status can_cover(const std::string& path) const override;
  void cover(const std::string& checkpoint, const std::string& path) override;
  void name_restart_file(const std::string& path) override { restart_file_ = path; }
  [[nodiscard]] Status check(const std::vector<ByteVector>& told, const std::vector<ByteVector>& told_first,
                             journal::Overwritten overwritten) const override;
  ByteVector positions(const std::vector<ByteVector>& told,
                       const std::vector<ByteVector>& told_first) override;
  [[nodiscard]] bool are_settled(const ByteVector& positions) const override;
  [[nodiscard]] std::function<std::optional<bool>()> settled_for_threads() const override {
    return service_.session().computing().settled();
  }
  [[nodiscard]] ByteVector with_failures(const ByteVector& positions) const override;
  [[nodiscard]] Status unknown_failure(const ByteVector& positions) const override;
  void note_told() override;
  void note_going_on() override;
  [[nodiscard]] Status can_keep(const ByteVector& positions) const override;
  void keep_since(const std::string& checkpoint, std::int64_t generation,
                  const ByteVector& positions) override;
  [[nodiscard]] std::int64_t oldest_undo(const checkpoint::Copy& copy) const override {
    return restart::oldest_undo(copy);
  }
  Status clean_up(const std::string& checkpoint, const std::vector<std::string>& copies) const override;
  [[nodiscard]] std::vector<checkpoint::NamedItem> own_items() const override;
  Result<std::vector<checkpoint::NamedItem>> make_own_items(const checkpoint::Copy& copy) override;
  Status prepare_resume(const std::string& checkpoint, const checkpoint::Copy& copy) override;
  [[nodiscard]] bool changes_files() const override;
  Status resume() override;

  /// Returns where a stream that the program is about to create with this pattern goes on, or nothing if it
  /// begins anew.
  [[nodiscard]] std::optional<streams::Position> stream(const std::string& pattern) const;
  /// Returns the arrays that the loaded checkpoint has of unfinished intervals, for the streams that go on in
  /// them.
  [[nodiscard]] const std::shared_ptr<operations::Kept>& kept() const { return kept_; }
  /// Notes that the program has created the stream: another one with this pattern begins anew.
  void take_stream(const std::string& pattern) { streams_.erase(pattern); }
  [[nodiscard]] RecordedFiles& files() { return files_; }

  /// Local. Warns on rank 0 of files that streams of the loaded checkpoint have left unfinished, if the
  /// program has not created these streams: nobody finishes them. Called when the program ends. Blocks on
  /// storage.
  void warn_of_left_streams() const;

  /// Notes that the program is about to close a file to which this rank may have written. The next save makes
  /// the file durable before it is committed.
  void note_closing(const files::File& file);
  /// Notes that the program has closed the file at `path`, or is about to: the next save makes it durable.
  /// Blocks on storage if too many closed files wait.
  void note_closed(const std::string& path) { closed_.note(service_.target(), path); }
  /// Notes that the program has closed a shared file whose flushes a checkpoint has recorded, or has tried
  /// to: later saves record the content that it has now, or goes back to.
  void note_closed_shared(const SharedFlush& last);
  /// Notes that the program has renamed a file.
  void note_renamed(const std::string& from, const std::string& to) {
    closed_.note_renamed(service_.target(), from, to);
  }

 private:
  /// prepare_resume() fills it, and resume() gives it to the members of the same names: where the program's
  /// streams and files go on, and which files of the program the saves cover.
  struct Loaded {
    std::map<std::string, streams::Position> streams;
    RecordedFiles files;
    std::vector<CoveredFile> covered;
    std::map<std::string, std::vector<std::string>> all_covered;
    std::vector<SharedFlush> shared = {};
    std::set<std::string> shared_there = {};  // paths of those that need not be brought back
    bool changes_files = false;
    std::set<std::string> lost = {};  // on rank 0: covered files that stay as they are (lost_logs=go_on)
  };
  Status prepare_covered(const CoveredFile& file);
  Result<journal::Position> position_of(const OpenFile& each, journal::Overwritten overwritten);
  Result<std::vector<CoveredFile>> stand_covered(const std::string& checkpoint) const;
  Status prepare_shared(std::vector<SharedFlush> recorded);
  [[nodiscard]] std::string name_of_shared(const SharedFlush& flush) const;
  [[nodiscard]] Result<bool> bring_shared_back(const SharedFlush& to) const;
  std::set<std::string> know_shared(const std::vector<ByteVector>& told_first);
  [[nodiscard]] bool may_record_closed(const SharedFlush& flush) const;
  void warn_of_lost(const SharedFlush& flush);
  [[nodiscard]] Status check_not_shared(const Recorded& recorded) const;
  [[nodiscard]] Status check_not_open(const Recorded& recorded) const;

  files::Service& service_;
  const std::function<Open()> open_;
  /// Streams of the loaded checkpoint that the program has not created yet, by pattern. The same on every
  /// rank, except for put_lead: rank 0's counts.
  std::map<std::string, streams::Position> streams_;
  std::shared_ptr<operations::Kept> kept_ = std::make_shared<operations::Kept>();
  std::shared_ptr<operations::Kept> loaded_;  // a load fills it; kept_ once the load has succeeded
  std::set<std::string> told_by_saves_;       // streams of whose failures a failed save has told the program
  std::set<std::string> goes_on_;             // streams behind whose failures the program goes on
  /// Files that saves of each checkpoint cover, by its name, in the order in which the program named them.
  /// Rank 0 alone looks at them.
  std::map<std::string, std::vector<std::string>> covered_;
  std::string checkpoint_;    // of the save that begins now
  std::string restart_file_;  // of the save that begins now; "" if the program named none
  RecordedFiles files_;
  /// Shared files by their names behind links: on the I/O rank of each, those that the program has closed; on
  /// rank 0, all that the loaded copy or a save of this run has recorded.
  std::map<std::string, SharedFlush> closed_shared_, shared_;
  std::set<std::pair<std::string, std::uint64_t>> told_lost_;  // paths and opens of warn_of_lost()
  Loaded prepared_;                                            // for resume()
  journal::ClosedFiles closed_;
};

}  // namespace tailrace::restart
