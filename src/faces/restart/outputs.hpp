// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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

/// A formatted Fortran file that may be written. The first rank's Fortran has it open.
struct OpenText {
  std::string path;
  /// First rank only. Returns where the file stands, with all of its bytes handed to the system, or nothing
  /// if it was not written to. Returns Code::state if it is refused because the file could not be brought
  /// back there.
  std::function<Result<std::optional<journal::Position>>(journal::Overwritten)> position;
  /// First rank only. Keeps the file open until it is durable. Returns nullptr before position() was called.
  std::function<std::shared_ptr<storage::File>()> hold;
};

/// The program's outputs, each kind in the order of opening, which is the same on every rank.
struct Open {
  std::vector<const streams::Stream*> streams;
  std::vector<OpenFile> files;
  std::vector<OpenText> texts;
};

/// The outputs of a session as its checkpoints see them: the open ones, and those that a checkpoint has told
/// of and the program has not opened yet.
class Outputs final : public checkpoint::Outputs {
 public:
  /// `open` returns the outputs that are open at the moment.
  Outputs(files::Service& service, std::function<Open()> open) : service_(service), open_(std::move(open)) {}

  Result<Standing> stand(journal::Overwritten overwritten) override;
  [[nodiscard]] Status check(const std::vector<ByteVector>& told, const std::vector<ByteVector>& told_first,
                             journal::Overwritten overwritten) const override;
  ByteVector positions(const std::vector<ByteVector>& told,
                       const std::vector<ByteVector>& told_first) override;
  [[nodiscard]] bool are_settled(const ByteVector& positions) const override;
  [[nodiscard]] ByteVector with_failures(const ByteVector& positions) const override;
  [[nodiscard]] Status can_keep(const ByteVector& positions) const override;
  void keep_since(const std::string& checkpoint, std::int64_t generation,
                  const ByteVector& positions) override;
  [[nodiscard]] std::int64_t oldest_undo(const checkpoint::Copy& copy) const override {
    return restart::oldest_undo(copy);
  }
  [[nodiscard]] std::vector<checkpoint::NamedItem> own_items() const override;
  Result<std::vector<checkpoint::NamedItem>> make_own_items(const checkpoint::Copy& copy) override;
  Status resume(const checkpoint::Copy& copy) override;

  /// Returns where a stream of this pattern goes on that is not created yet, or nothing if it begins anew.
  [[nodiscard]] std::optional<streams::Position> stream(const std::string& pattern) const;
  /// Returns what the loaded checkpoint has of intervals in which streams are to go on.
  [[nodiscard]] const std::shared_ptr<operations::Kept>& kept() const { return kept_; }
  /// Says that the stream goes on there now.
  void take_stream(const std::string& pattern) { streams_.erase(pattern); }
  [[nodiscard]] RecordedFiles& files() { return files_; }

  /// Says that the program is about to close the file, of which this rank may have written some. The file is
  /// durable once the next save is committed.
  void note_closing(const files::File& file);
  void note_closed(const std::string& path) { closed_.note(service_.target(), path); }
  /// Says that the program has renamed a file.
  void note_renamed(const std::string& from, const std::string& to) {
    closed_.note_renamed(service_.target(), from, to);
  }

 private:
  Result<journal::Position> position_of(const OpenFile& each, journal::Overwritten overwritten);
  [[nodiscard]] Status check_not_shared(const Recorded& recorded) const;
  [[nodiscard]] Status check_not_open(const Recorded& recorded) const;

  files::Service& service_;
  const std::function<Open()> open_;
  /// By pattern, as the loaded checkpoint has it. The same on every rank, except for put_lead: rank 0's
  /// counts.
  std::map<std::string, streams::Position> streams_;
  std::shared_ptr<operations::Kept> kept_ = std::make_shared<operations::Kept>();
  std::shared_ptr<operations::Kept> loaded_;  // what a load reads into, until it has succeeded
  RecordedFiles files_;
  journal::ClosedFiles closed_;
};

}  // namespace tailrace::restart
