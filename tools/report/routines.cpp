// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "routines.hpp"

#include <algorithm>
#include <iterator>

namespace tailrace::reports {

namespace {

constexpr std::string_view kRank = "compute ranks", kServer = "servers", kWorker = "threads of servers";
constexpr std::string_view kBoth = "compute ranks, servers";

constexpr Routine kRoutines[] = {
    {"model", Kind::program, kRank,
     "the program computes; also what collective files, checkpoints and shared files copy, read and write",
     "nothing: this is what the job is for"},
    {"capture", Kind::work, kRank, "puts copy arrays into the staging memory, or accumulate them",
     "fewer fields or levels; a section or stride in `define`; one server on each node"},
    {"encode", Kind::work, kWorker, "values become records of the format",
     "more `TAILRACE_THREADS` or servers; `packing=simple`; fewer bits"},
    {"assemble", Kind::work, "servers and their threads",
     "the pieces of a record are put together, or packed for another server",
     "layouts of few, large boxes on each rank; a server on each node"},
    {"staging_full", Kind::waits_servers, kRank, "a put waits for room in the staging memory",
     "a larger `TAILRACE_STAGING`; if every step waits, what keeps the servers busy"},
    {"skew", Kind::waits_ranks, kRank, "a rank waits for the other ranks' end of a step",
     "the balance of the model, not its output"},
    {"get_wait", Kind::waits_input, kRank, "a get waits for a step that is read, or reads it",
     "a larger `prefetch=`, more `TAILRACE_IO_THREADS`"},
    {"message", Kind::waits_mpi, kBoth,
     "messages are looked for, sent and taken, and what the library does beside the others",
     "a server on each node: `TAILRACE_SERVERS=node:1`; fewer, larger steps"},
    {"barrier", Kind::waits_mpi, kBoth, "a rank waits for the others in an agreement",
     "fewer opens, closes and definitions; the balance of the ranks"},
    {"wait_for_messages", Kind::waits_mpi, kServer, "a server waits for other servers",
     "fewer servers; one on each node; another `method=`"},
    {"wait_for_storage", Kind::waits_storage, kBoth,
     "a server waits for its writes and syncs; a rank waits in `tr_stream_wait`, `tr_stream_close` or "
     "`tr_finalize` until steps are durable",
     "fewer bytes: `accuracy=`, `packing=ccsds`; a faster file system; waiting later and less often"},
    {"write", Kind::waits_storage, kWorker, "storage takes bytes",
     "fewer bytes; another method of writing (`method=`)"},
    {"fsync", Kind::waits_storage, kWorker, "storage makes bytes durable",
     "fewer, larger steps; a file system that others do not use"},
    {"commit", Kind::waits_storage, kWorker, "a step is entered in the index, which is made durable",
     "fewer, larger steps"},
    {"wait_for_encoding", Kind::waits, kServer, "a server waits for its threads to encode",
     "more `TAILRACE_THREADS`; `packing=simple`; fewer bits"},
    {"wait", Kind::waits_storage, kWorker, "waits for room on a full disk (`on_full=wait`)",
     "room; fewer bytes"},
    {"idle", Kind::idle, "servers and their threads", "nothing to do: ready for the next step",
     "fewer servers, if it is most of the time"},
};
constexpr Routine kUnknown{"", Kind::work, "", "", ""};

}  // namespace

std::span<const Routine> routines() { return kRoutines; }

const Routine& routine_named(std::string_view name) {
  const auto* const found = std::ranges::find(kRoutines, name, &Routine::name);
  return found == std::end(kRoutines) ? kUnknown : *found;
}

std::string_view text_of(Kind kind) {
  switch (kind) {
    case Kind::waits_servers:
      return "waits for servers";
    case Kind::waits_ranks:
      return "waits for other ranks";
    case Kind::waits_input:
      return "waits for input";
    case Kind::waits_mpi:
      return "waits for MPI";
    case Kind::waits_storage:
      return "waits for storage";
    case Kind::waits:
      return "waits for threads";
    case Kind::program:
    case Kind::work:
    case Kind::idle:
      return "";
  }
  return "";
}

}  // namespace tailrace::reports
