// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faces/restart/recorded.hpp"
#include "ground/storage/target.hpp"

// A checkpoint is the commit of a whole run: it records how far each output was. These functions see and
// restore the outputs from outside, without the program. They use what a run that goes on from the checkpoint
// uses, so that such a run afterwards finds what it would have made itself.
namespace tailrace::restart {

/// How an output stands to the generation that has recorded it. The later, the worse.
enum class Outlook {
  agrees,   // it holds what the generation has recorded
  ahead,    // it holds more, or other bytes: restore() brings it back
  stays,    // nothing leads back to it: restore() leaves it. A shared file at another flush, or a lost log
  lost,     // nothing can bring it back to the generation
  unknown,  // storage does not give it
};

/// One file of an output, as `tailrace run-state` finds it.
struct OutputState {
  enum class Kind { stream, file, covered, shared };
  Kind kind = Kind::stream;
  std::string name;  // the pattern of the stream, or the path of the file
  std::string path;  // "" for a stream of which there is no file
  Outlook outlook = Outlook::agrees;
  std::string text;             // what was found, for people
  std::int64_t steps = 0;       // of a stream: committed in the file
  std::int64_t kept_steps = 0;  // of these, how many the generation has
  Bytes bytes = 0;              // of a file: its size
  Bytes recorded_bytes = 0;     // of a file: its size at the generation
  Bytes put_back = 0;           // of a file: how many bytes restore() puts back
  bool leads_back = false;      // of a shared file: undo files lead to the recorded flush

  [[nodiscard]] std::int64_t steps_cut() const {
    return kind == Kind::stream && outlook == Outlook::ahead ? steps - kept_steps : 0;
  }
};

struct RunStateOptions {
  /// Also go on with files that another run has begun, as a stream with existing=continue does.
  bool any_run = false;
  /// Leave covered files as they are that are lost, as a run with lost_logs=go_on does.
  bool leave_lost = false;
};

/// Local, like all functions here; each blocks on storage. Changes nothing. Returns the state of all outputs
/// that a copy has recorded. `recorded` knows its undo files (find_undo_files()).
std::vector<OutputState> look_at_outputs(storage::Target& target, const Recorded& recorded,
                                         RunStateOptions options = {});
/// Returns the worst of all.
Outlook worst_of(const std::vector<OutputState>& states);

/// Brings all outputs to the generation. The caller holds the lock of the checkpoint. Takes the locks of
/// streams and their files as a run does: Code::state if a program holds one. Other files have no lock. Call
/// it only if no output is lost (look_at_outputs()). Durable on return. If it fails or is killed at any
/// instant, it can be repeated, and a run can go on from the checkpoint.
Status restore_outputs(storage::Target& target, const Recorded& recorded, RunStateOptions options = {});
/// Returns Code::state if a program holds one of the streams. Changes nothing.
Status check_streams_free(storage::Target& target, const Recorded& recorded, RunStateOptions options = {});

// The parts of the functions above.
void look_at_stream(storage::Target& target, const streams::Position& position, RunStateOptions options,
                    std::vector<OutputState>& states);
Status restore_stream(storage::Target& target, const streams::Position& position, RunStateOptions options);
Status check_stream_free(storage::Target& target, const streams::Position& position, RunStateOptions options);
OutputState look_at_file(storage::Target& target, const journal::Position& position);
Status restore_file(storage::Target& target, const journal::Position& position);
OutputState look_at_covered(storage::Target& target, const CoveredFile& file);

/// Returns the shared files with safety= that the checkpoint has recorded, and those in these directories
/// that a program has left open. Those that nobody has recorded go back to their own last flush. Those whose
/// lock a program holds, perhaps one of another job, agree, and their text names the holder.
std::vector<OutputState> look_at_shared_files(storage::Target& target,
                                              const std::vector<std::string>& directories,
                                              const std::vector<SharedFlush>& recorded = {});
/// Brings the file to the flush `to` that the checkpoint has recorded. Returns false, and changes nothing, if
/// nothing leads there, as undo files may have gone since a look at it. With nullptr, and for a flush that an
/// early version has recorded, without Flushed::open, brings the file to its own last flush. Returns
/// Code::state if a program holds the lock.
Result<bool> restore_shared_file(storage::Target& target, const std::string& path,
                                 const SharedFlush* to = nullptr);

}  // namespace tailrace::restart
