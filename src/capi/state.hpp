// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capi/text_files.hpp"
#include "checkpoint/checkpoint.hpp"
#include "files/file.hpp"
#include "files/groups.hpp"
#include "outofcore/out_of_core.hpp"
#include "restart/outputs.hpp"
#include "session/bootstrap.hpp"
#include "session/session.hpp"
#include "streams/stream.hpp"
#include "tailrace.h"
#include "unformatted/record_file.hpp"

/// The handles of the C face.
struct tr_layout {
  tailrace::streams::PlacedLayout placed;
};
struct tr_stream {
  std::unique_ptr<tailrace::streams::Stream> stream;
};
struct tr_file {
  std::unique_ptr<tailrace::files::File> file;
  int standard = -1;       // number of the standard stream, if it is
                           // one
  std::string name = {};   // as it was given, with %d in the name of
                           // local files
  int ranks = 1;           // number of ranks that opened it
  bool temporary = false;  // closing removes it
  std::unique_ptr<tailrace::unformatted::RecordFile> records =
      nullptr;  // set for an unformatted Fortran file
};
struct tr_window {
  std::unique_ptr<tailrace::outofcore::OutOfCore> array;
};
struct tr_checkpoint {
  std::unique_ptr<tailrace::checkpoint::Checkpoint> checkpoint = nullptr;
  std::vector<tr_variable> variables = {};  // of the older form
  std::vector<std::string> names = {};      // names of `variables`
};

namespace tailrace::capi {

/// An array that tr_distribute has registered.
struct Distributed {
  int type = 0;
  tr_layout layout;
  std::unique_ptr<char[]> own;  // gives an address to a rank that owns nothing
  std::int64_t number = 0;      // the same on every rank
  Bytes bytes = 0;              // of this rank's memory
};

/// Everything that the library holds in this process: one session at a time.
struct State {
  std::unique_ptr<session::Bootstrap> bootstrap;  // the session's; made before it and gone after it
  std::unique_ptr<session::Session> session;
  std::vector<tr_stream*> streams;   // open streams, in the order of creation (the same on every rank)
  std::vector<TextFile> text_files;  // open files, in the order of creation: the same on every rank
  std::unique_ptr<files::Service> file_service;
  std::unique_ptr<restart::Outputs> outputs;
  std::unique_ptr<files::Groups> groups;
  std::vector<tr_window*> windows;  // open windows, in the order of creation
  std::vector<tr_file*> files;      // open files, in the order of creation, also those of the local mode
  std::vector<tr_checkpoint*> checkpoints;                          // open checkpoints, in the order of
                                                                    // creation
  std::map<const void*, std::unique_ptr<Distributed>> distributed;  // by the caller's address
  std::int64_t arrays_registered = 0;
  std::int64_t layouts_made = 0;
  Bytes layout_bytes = 0;  // bytes of this rank in an array of 8-byte elements for each layout made so far
  bool served = false;     // a server rank that has returned from its work
  int world_rank = -1;     // as MPI told it last; -1 before it was asked
};
State& state();

/// Keeps the text for tr_error() and returns the code.
int fail(const Status& status);
inline int result(const Status& status) { return status.is_ok() ? TR_OK : fail(status); }
/// Returns the session if this rank computes in one. Otherwise keeps TR_ERR_STATE under the name of `call`.
session::Session* session_for(const char* call);

/// Collective. Makes what collective files need as long as the session lasts, and the standard streams.
Status begin_files();
/// Collective. Closes the open files, in the order of creation. Returns the first failure.
Status end_files();
/// Collective over the compute ranks. Gives the next layout and the next registered array the same numbers on
/// all ranks, numbers that none of them has used.
Status begin_numbers();
/// Local. Makes the only open checkpoint expect one array of each layout in its first save: the program has
/// not named its arrays yet. Does nothing if several checkpoints are open.
void expect_arrays();
/// Local. Counts a layout that the program made (`times` is 1) or freed (-1).
void count_layout(const layout::Layout& layout, int times);
/// Collective. Closes the open checkpoints. Runs after the streams end, because checkpoints may wait for
/// their steps.
Status end_checkpoints();
/// Collective. Closes the open out-of-core arrays. Runs before files end.
Status end_windows();

}  // namespace tailrace::capi
