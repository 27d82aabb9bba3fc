// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/resume/resume.hpp"
#include "ground/storage/target.hpp"

// One rank looks at the files that a stream finds before its first step, and tells the others.
namespace tailrace::streams {

/// Returns the name of the file for this lock.
std::string path_of_lock(const StreamRequest& request);
/// Local. Takes the lock of all files that a stream may have: two streams with the same names would replace
/// each other's files. The lock is held until the returned object dies. Makes the directory. Returns
/// Code::state naming the holder, or Code::io if nothing can be written.
Result<std::shared_ptr<void>> lock_stream(storage::Target& target, const StreamRequest& request);

/// Local; changes nothing. Returns the first reason why the stream cannot write its files as `existing` asks,
/// or cannot go on from the position in `resume`.
Status check_existing_files(storage::Target& target, const StreamRequest& request,
                            const std::optional<Position>& resume);

/// Local. Returns the pattern's files that are there, each by its least lead.
Result<std::map<std::int64_t, std::string>> find_files(storage::Target& target, const Pattern& pattern,
                                                       const PatternContext& context);

/// A file of a run before this one. It may be unfinished, or not announced.
struct LeftBehind {
  std::string path;
  std::int64_t lead = 0;  // of its last step
};

/// The last file of the runs before, in which the stream may go on, and the fields that its steps have.
struct LastFile {
  std::string path;                 // "" = there is none
  std::vector<std::string> fields;  // in the order of the index

  void pack(Packer& out) const;
  static LastFile unpack(Unpacker& in);
};

/// Local; changes nothing. For existing=continue without a checkpoint. Adds the files that runs before may
/// have left unfinished, in the order of their leads: the last one whose index says it is finished, since it
/// may not be announced, and all later ones that have steps. `last` gets the last one with steps.
Status find_left_behind(storage::Target& target, const StreamRequest& request, std::vector<LeftBehind>& left,
                        LastFile& last);

/// Local; changes nothing. Returns the file of the step behind which the stream goes on, or none if it has
/// left no index that can be read: the first step tells what is wrong then.
Result<LastFile> file_of_position(storage::Target& target, const StreamRequest& request,
                                  const Position& position);

/// Returns the error of existing=fail.
Status exists_already(const std::string& path);

/// Returns `position` with the files of the stream on which it relies.
Result<Resuming> resuming_from(Position position, const StreamRequest& request);

/// Returns true if the file of the position is gone, but the manifest knows that it was whole: a program that
/// waits for finished files may move them, with their index or without.
Result<bool> was_taken_away(storage::Target& target, const Resuming& resuming);

}  // namespace tailrace::streams
