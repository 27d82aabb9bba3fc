// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "base/log.hpp"
#include "base/text.hpp"
#include "capi/state.hpp"
#include "comm/end_job.hpp"
#include "streams/ledger.hpp"

namespace tailrace::capi {

namespace {

thread_local std::string last_error;

/// MPI calls this when a program finalizes it (MPI 3.1, 8.7.1). A session that is still open then would leave
/// servers waiting for ever.
int on_finalize(MPI_Comm, int, void*, void*) {
  if (state().session == nullptr) return MPI_SUCCESS;
  comm::end_job(
      "MPI_Finalize was called before tr_finalize: what was not durable yet is lost. Call tr_finalize on "
      "every "
      "rank first.");
}

void watch_for_finalize() {
  static int key = MPI_KEYVAL_INVALID;
  if (key != MPI_KEYVAL_INVALID) return;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

Status close_everything() {
  Status first;
  State& held = state();
  // Streams first: their votes find out where ranks have begun different steps, those of files would wait for
  // the ranks that are still in one.
  while (!held.streams.empty()) {
    tr_stream* const stream = held.streams.front();
    // Still in the list meanwhile: a save may wait for what the stream has not made durable yet.
    const Status status = stream->stream->close();
    held.streams.erase(held.streams.begin());
    if (first.is_ok()) first = status;
    delete stream;
  }
  for (const Status& status : {end_checkpoints(), end_windows(), end_files()}) {
    if (first.is_ok()) first = status;
  }
  return first;
}

}  // namespace

State& state() {
  static State held;
  return held;
}

int fail(const Status& status) {
  last_error = status.text();
  return static_cast<int>(status.code());
}

session::Session* session_for(const char* call) {
  if (state().session != nullptr) return state().session.get();
  fail(Status(Code::state,
              cat(call, ": ", state().served ? "this rank was a server" : "tr_init comes first")));
  return nullptr;
}

}  // namespace tailrace::capi

using namespace tailrace;
using namespace tailrace::capi;

const char* tr_error(void) { return last_error.c_str(); }

const char* tr_version(void) { return "0.1.0"; }

int tr_init(MPI_Comm world, MPI_Comm* compute, const char* options) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) return fail(Status(Code::state, "tr_init: MPI_Init comes first"));
  if (compute == nullptr) return fail(Status(Code::argument, "tr_init: `compute` is a null pointer"));
  *compute = MPI_COMM_NULL;
  if (state().session != nullptr) return fail(Status(Code::state, "tr_init: the session is open already"));
  Result<std::unique_ptr<session::Session>> made =
      session::Session::create(world, options, streams::make_ledger);
  if (!made.is_ok()) return fail(made.status().in("tr_init"));
  watch_for_finalize();
  state().served = false;
  if ((*made)->is_server()) {
    (*made)->serve();
    state().served = true;
    return TR_OK;
  }
  state().session = std::move(*made);
  *compute = state().session->compute();
  const Status files = begin_files();
  return result((files.is_ok() ? begin_checkpoints() : files).in("tr_init"));
}

int tr_init_f(MPI_Fint world, MPI_Fint* compute, const char* options) {
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = tr_init(MPI_Comm_f2c(world), &comm, options);
  if (compute != nullptr) *compute = MPI_Comm_c2f(comm);
  return code;
}

int tr_finalize(void) {
  if (state().served) {
    state().served = false;
    return TR_OK;
  }
  session::Session* const session = session_for("tr_finalize");
  if (session == nullptr) return TR_ERR_STATE;
  const Status status = close_everything();
  session->leave();
  state().session.reset();
  state().resuming.clear();
  state().recorded_files = {};
  state().text_files.clear();
  return result(status);
}

void tr_log(const char* message) {
  int rank = 0;
  if (state().session != nullptr)
    rank = state().session->rank();
  else
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);  // tr_init itself may have failed
  if (rank != 0) return;
  std::fprintf(stderr, "%s\n", message);
}

int tr_progress(void) {
  session::Session* const session = session_for("tr_progress");
  if (session == nullptr) return TR_ERR_STATE;
  session->pump();
  return TR_OK;
}

int tr_should_stop(void) {
  session::Session* const session = session_for("tr_should_stop");
  if (session == nullptr) return 0;
  const Result<bool> stop = guarded([&] { return session->should_stop(); });
  if (stop.is_ok()) return *stop ? 1 : 0;
  fail(stop.status().in("tr_should_stop"));
  // A program that asks in its loop does not look for errors here.
  if (session->rank() == 0) log(LogLevel::error, tr_error());
  return session->is_stopping() ? 1 : 0;
}
