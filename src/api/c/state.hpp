// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/session/bootstrap.hpp"
#include "engine/session/session.hpp"
#include "faces/checkpoint/checkpoint.hpp"
#include "faces/files/file.hpp"
#include "faces/files/groups.hpp"
#include "faces/input/input_stream.hpp"
#include "faces/input/server.hpp"
#include "faces/outofcore/out_of_core.hpp"
#include "faces/restart/outputs.hpp"
#include "faces/shared/elements/global_array.hpp"
#include "faces/shared/pages/page_server.hpp"
#include "faces/shared/shared_file.hpp"
#include "faces/streams/described/described_streams.hpp"
#include "faces/streams/stream.hpp"
#include "faces/unformatted/record_file.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/lasting_file.hpp"
#include "tailrace.h"

/// The handles of the C face.
struct tr_layout {
  tailrace::streams::PlacedLayout placed;
};
struct tr_stream {
  std::unique_ptr<tailrace::streams::Stream> stream;
  std::unique_ptr<tailrace::input::InputStream> input = nullptr;  // instead of `stream`, if it is read
  // Instead of `stream`, if it stands for the streams of a description. These have handles of their own.
  std::unique_ptr<tailrace::streams::DescribedStreams> described = nullptr;
};
struct tr_file {
  std::unique_ptr<tailrace::files::File> file;
  int standard = -1;      // the number of a standard stream
  std::string name = {};  // as the program gave it, with the %d of local files
  std::shared_ptr<tailrace::files::Group> group = nullptr;  // the ranks that opened it, also a local file
  bool temporary = false;                                   // removed when it is closed
  // The records of an unformatted Fortran file; nullptr for other files.
  std::unique_ptr<tailrace::unformatted::RecordFile> records = nullptr;
};
struct tr_window {
  std::unique_ptr<tailrace::outofcore::OutOfCore> array;
};
struct tr_shared {
  std::unique_ptr<tailrace::shared::SharedFile> file;
};
struct tr_global {
  std::unique_ptr<tailrace::shared::GlobalArray> array;
};
struct tr_checkpoint {
  std::unique_ptr<tailrace::checkpoint::Checkpoint> checkpoint;
  std::vector<std::pair<std::string, tr_array>> variables =
      {};  // variables of the older form, with their names
};

namespace tailrace::capi {

/// An array that tr_distribute has registered.
struct Distributed {
  int type = 0;
  tr_layout layout;
  std::unique_ptr<char[]> own;  // the array's address on a rank that owns nothing
  std::int64_t number = 0;      // the same on every rank
  Bytes bytes = 0;              // number of bytes of this rank's memory
};

/// A formatted Fortran file that may be written. Fortran has it open on the I/O rank.
struct TextFile {
  std::string path;
  int (*stand)(void* handle, int cuts, std::int64_t* size) = nullptr;
  void* handle = nullptr;
  // Set on the I/O rank once a save had to make the file durable.
  std::shared_ptr<journal::LastingFile> file = nullptr;
};

/// Everything that the library holds in this process. One session is open at a time.
struct State {
  /// A process that ends without tr_finalize waits for its threads, and they for no step of a stream.
  ~State() {
    for (tr_checkpoint* const each : checkpoints) each->checkpoint->stop_waiting();
  }

  std::unique_ptr<session::Bootstrap> bootstrap;  // made before the session, destroyed after it
  std::unique_ptr<session::Session> session;
  std::unique_ptr<input::InputServer> input_server;  // these two exist on a server, as long as it serves
  std::unique_ptr<shared::PageServer> page_server;
  // Each list has the open handles in the order of creation. The lists are the same on all ranks, except
  // those of files: groups of ranks open files by themselves.
  std::vector<tr_stream*> streams;
  std::vector<tr_stream*> inputs;     // streams that are read
  std::vector<tr_stream*> described;  // each stands for the streams of a description
  std::vector<TextFile> text_files;
  std::vector<tr_window*> windows;
  std::vector<tr_shared*> shared_files;
  std::vector<tr_global*> global_arrays;
  std::vector<tr_file*> files;
  std::vector<tr_checkpoint*> checkpoints;
  std::unique_ptr<files::Service> file_service;
  std::unique_ptr<restart::Outputs> outputs;
  std::unique_ptr<files::Groups> groups;
  std::map<const void*, std::unique_ptr<Distributed>> distributed;  // the caller's address -> the array
  std::int64_t arrays_registered = 0;
  std::int64_t layouts_made = 0;
  /// The bytes that this rank has in an array of 8-byte elements, for each layout made so far.
  Bytes layout_bytes = 0;
  bool served = false;  // this rank was a server, and tr_init has returned
  int world_rank = -1;  // as MPI told it last; -1: not asked yet
  /// The rank among those that get the errors of tr_init and tr_finalize; among servers, once they have
  /// served. -1 before tr_init.
  int last_rank = -1;
};
State& state();

/// Keeps the text of `status` for tr_error(), and returns its code.
int fail(const Status& status);
inline int result(const Status& status) { return status.is_ok() ? TR_OK : fail(status); }
/// Ends the whole job, after one rank has printed `why` (tr_print_once_f). Each rank whose collective call
/// has failed calls it, with or without a session. Does not return.
[[noreturn]] void end_job_together(const std::string& why);
/// Returns the session if this rank computes in one. Otherwise returns nullptr and keeps TR_ERR_STATE, with
/// `call` in its text, for tr_error().
session::Session* session_for(const char* call);

/// Returns `handle` if it is one of the `open` handles. Otherwise returns nullptr and keeps TR_ERR_STATE for
/// tr_error(), whose text calls it a `kind`.
template <typename Handle>
Handle* find_open(const std::vector<Handle*>& open, const Handle* handle, const char* call,
                  const char* kind) {
  if (session_for(call) == nullptr) return nullptr;
  const auto found = std::ranges::find(open, handle);
  if (found != open.end()) return *found;
  fail(Status(Code::state, cat(call, ": not an open ", kind)));
  return nullptr;
}
/// Removes a handle from the `open` ones. Destroying the result deletes the handle.
template <typename Handle>
std::unique_ptr<Handle> take_off(std::vector<Handle*>& open, Handle* handle) {
  std::erase(open, handle);
  return std::unique_ptr<Handle>(handle);
}
/// Closes the open handles in the order of creation. `close` closes a handle and removes it from `open`.
/// Returns the first failure.
template <typename Handle, typename Close>
Status close_all(std::vector<Handle*>& open, const Close& close) {
  Status first;
  while (!open.empty()) {
    const Status status = close(open.front());
    if (first.is_ok()) first = status;
  }
  return first;
}

/// Local. Returns the program's open outputs.
restart::Open what_is_open();
/// Returns what checkpoints record of a flush.
restart::SharedFlush flush_of(const shared::SafeFile::LastFlush& last);
/// On the I/O rank. Returns where the file stands, with all of its bytes passed to the system, or nothing if
/// it was not written to. Returns Code::state if the file could not be brought back to that state later, so
/// that a save must refuse it.
Result<std::optional<journal::Position>> position_of(TextFile& text, journal::Overwritten overwritten);
/// Local. Notes that the program is about to close the file, which this rank may have written.
void note_closing(const files::File& file);
/// Local. Notes that the program is about to close a formatted file of the first rank.
void note_closing_text(const std::string& path);
/// Local. Notes that a file has another name now.
void note_renamed(const std::string& from, const std::string& to);

/// Collective. Makes the standard streams, and the services that collective files need as long as the session
/// lasts.
Status begin_files();
/// Collective. Closes the open files, in the order of creation. Returns the first failure.
Status end_files();
/// Collective over the compute ranks. Sets the numbers of the next layout and the next registered array: the
/// same on all ranks, and not used by any of them before.
Status begin_numbers();
/// Local. Makes the only open checkpoint expect one array of each layout in its first save, because the
/// program has not named its arrays yet. Does nothing if several checkpoints are open.
void expect_arrays();
/// Local. Counts a layout that the program made (`times` is 1) or freed (-1).
void count_layout(const layout::Layout& layout, int times);
/// Local. Forgets do_nio and the descriptors of its files. The files themselves end with the other shared
/// files.
void end_donio();
/// Local. True if do_nio has begun the session: MPI_Finalize then ends it.
bool donio_owns_session();
/// Local. Called by each call that shows that the program goes on, whatever it was told before.
void note_going_on();
/// Local. Has the running saves take the failures of a stream that has been closed; call it before the stream
/// leaves the list.
void take_failures();
/// Collective. Closes the open checkpoints. Called after the streams are closed, because checkpoints may wait
/// for their steps.
Status end_checkpoints();
/// Local. Returns `handle` if it is an open stream that is read, or nullptr. Keeps no error.
tr_stream* find_input(tr_stream* handle);
/// Local. Returns `handle` if it is open and stands for the streams of a description, or nullptr. Keeps no
/// error.
tr_stream* find_described(tr_stream* handle);
/// Local. Forgets the handles of descriptions. Called before their streams are closed.
void forget_described();
/// Collective. Closes the open streams that are read. Called before end_files().
Status end_inputs();
/// Collective. Closes the open out-of-core arrays. Called before end_files().
Status end_windows();
/// Collective. Closes the open shared files, with a warning for each. Called before end_files().
Status end_shared_files();
/// Collective. Frees the global arrays that are left, with a warning for each. Called before end_files().
Status end_global_arrays();

}  // namespace tailrace::capi
