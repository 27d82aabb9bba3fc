// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <thread>

#include "api/c/fortran_files.hpp"
#include "api/c/state.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "ground/base/log.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/mpi_process.hpp"

namespace tailrace::capi {

namespace {

std::string& last_error() { return of_this_thread<std::string, State>(); }

/// A static object, so that it is older than the program's own and is destroyed later, after handlers of
/// atexit(3) have run: in these the program may end the library or MPI.
State everything;

/// Looks for a session that is still open when the program finalizes MPI, and ends the job, because servers
/// would wait forever. A session that do_nio has begun ends normally: it has no servers, and its program has
/// no other call for that.
void look_for_open_session() {
  if (state().session == nullptr) return;
  if (donio_owns_session()) {
    if (tr_finalize() != TR_OK) end_job_together(tr_error());  // no other rank would learn of it
    return;
  }
  comm::end_job(
      "MPI_Finalize was called before tr_finalize: what was not durable yet is lost. Call tr_finalize on "
      "every rank first.");
}

Status close_everything() {
  State& held = state();
  const auto close_stream = [&](tr_stream* handle) {
    // The stream stays in the list until it is closed: a save may wait for its steps to become durable.
    handle->stream->note_unclosed();
    const Status status = handle->stream->close();
    take_failures();
    take_off(held.streams, handle);
    return status;
  };
  Status first;
  forget_described();
  for (const Status& status :
       {held.session->computing().meet_in_finalize(), end_inputs(), close_all(held.streams, close_stream),
        end_checkpoints(), end_windows(), end_shared_files(), end_global_arrays(), end_files()}) {
    if (first.is_ok()) first = status;
  }
  return first;
}

/// Local, on a server. Begins the services with which the server reads for the compute ranks of its node, and
/// answers other nodes for them.
Status begin_on_server() {
  if (state().page_server != nullptr) return {};
  state().input_server = std::make_unique<input::InputServer>(*state().session);
  Result<std::unique_ptr<shared::PageServer>> made = shared::PageServer::create(*state().session);
  TR_TRY(made.status());
  state().page_server = std::move(*made);
  return {};
}

/// Local, on a server. Ends its services. The page server drops all memory that was handed over, also memory
/// on which the input server works: so the input server must still exist then.
void end_on_server() {
  state().page_server.reset();
  state().input_server.reset();
}

/// Collective over all ranks. Keeps the session and begins the services that compute ranks need in it: all of
/// them or none, with the same result on every rank. Servers take part before they serve, while they can
/// still return an error.
Status begin_services(std::unique_ptr<session::Session> session) {
  state().session = std::move(session);
  Status begun;
  for (Status (*const begin)() : {begin_files, begin_numbers}) {
    const Status mine = guarded([&] { return state().session->is_server() ? begin_on_server() : begin(); });
    begun = state().session->same_everywhere(mine);
    if (!begun.is_ok()) break;
  }
  if (begun.is_ok()) return {};
  // The services hold nothing yet, so their end adds nothing to the first error.
  for (const Status& ended : {end_checkpoints(), end_files()}) {
    if (!ended.is_ok()) log(LogLevel::error, ended.text());
  }
  end_on_server();
  state().session.reset();
  state().bootstrap->free_windows();
  state().bootstrap.reset();
  return begun;
}

/// Begins a session. `order` is the program's order, in which texts show shapes; a refused call does not
/// change it.
int begin_session(MPI_Comm world, MPI_Comm* compute, const char* options, Order order) {
  if (compute == nullptr) return fail(Status(Code::argument, "tr_init: `compute` is a null pointer"));
  *compute = MPI_COMM_NULL;
  if (!comm::mpi_is_running()) {
    return fail(Status(Code::state, "tr_init: it belongs between MPI_Init and MPI_Finalize"));
  }
  state().world_rank = comm::rank_in_world();
  state().last_rank = state().served ? state().last_rank : comm::rank_in(world);
  if (state().session != nullptr) return fail(Status(Code::state, "tr_init: the session is open already"));
  // The compute ranks may still be in the session. Then this rank would wait for them forever.
  if (state().served) {
    return fail(
        Status(Code::state, "tr_init: this rank was a server; tr_finalize comes before another tr_init"));
  }
  tell_in(order);
  Result<std::unique_ptr<session::Bootstrap>> bootstrap = session::Bootstrap::create(world, options);
  if (!bootstrap.is_ok()) return fail(bootstrap.status().in("tr_init"));
  Result<std::unique_ptr<session::Session>> made =
      session::Session::create((*bootstrap)->transport(), (*bootstrap)->take_facts(), streams::make_ledger);
  if (!made.is_ok()) {
    (*bootstrap)->free_windows();
    return fail(made.status().in("tr_init"));
  }
  comm::before_mpi_ends(look_for_open_session);
  state().bootstrap = std::move(*bootstrap);
  const Status begun = begin_services(std::move(*made));
  if (!begun.is_ok()) return fail(begun.in("tr_init"));
  if (state().session->is_server()) {
    const std::unique_ptr<session::Bootstrap> under_it = std::move(state().bootstrap);
    std::unique_ptr<session::Session> server = std::move(state().session);
    server->serving().run();
    end_on_server();
    state().last_rank = server->rank();
    server.reset();
    under_it->meet_at_the_end();
    state().served = true;
    return TR_OK;
  }
  *compute = state().bootstrap->compute();
  return TR_OK;
}

}  // namespace

State& state() { return everything; }

int fail(const Status& status) {
  last_error() = status.text();
  return static_cast<int>(status.code());
}

session::Session* session_for(const char* call) {
  if (state().session != nullptr) {
    state().session->note_call();
    return state().session.get();
  }
  fail(Status(Code::state,
              cat(call, ": ", state().served ? "this rank was a server" : "tr_init comes first")));
  return nullptr;
}

void end_job_together(const std::string& why) {
  comm::note_why_job_ends(why);
  tr_print_once_f(cat("tailrace: ", why).c_str());
  comm::end_job();
}

}  // namespace tailrace::capi

using namespace tailrace;
using namespace tailrace::capi;

const char* tr_error(void) { return last_error().c_str(); }

const char* tr_version(void) { return "0.1.0"; }

int tr_init(MPI_Comm world, MPI_Comm* compute, const char* options) {
  return begin_session(world, compute, options, Order::c);
}

int tr_init_f(MPI_Fint world, MPI_Fint* compute, const char* options) {
  // Handles can be converted only while MPI runs. Without MPI the program must get tr_init's own error.
  const bool running = comm::mpi_is_running();
  MPI_Comm comm = MPI_COMM_NULL;
  const int code =
      begin_session(running ? MPI_Comm_f2c(world) : MPI_COMM_NULL, &comm, options, Order::fortran);
  if (running && compute != nullptr) *compute = MPI_Comm_c2f(comm);
  return code;
}

int tr_finalize(void) {
  if (state().served) {
    state().served = false;
    return TR_OK;
  }
  session::Session* const session = session_for("tr_finalize");
  if (session == nullptr) return TR_ERR_STATE;
  session->board().watch().call = "tr_finalize";
  const Status status = close_everything();
  session->computing().leave(status);
  state().last_rank = session->rank();
  state().session.reset();
  state().bootstrap->meet_at_the_end();
  state().bootstrap.reset();
  state().text_files.clear();
  end_donio();
  return result(status);
}

void tr_log(const char* message) {
  // There may be no session: tr_init may have failed, or tr_finalize may be over. Before MPI_Init no rank is
  // known.
  State& held = state();
  if (held.session == nullptr && comm::mpi_is_running()) held.world_rank = comm::rank_in_world();
  if ((held.session != nullptr ? held.session->rank() : held.world_rank) > 0) return;
  std::fprintf(stderr, "%s\n", message);
}

int tr_progress(void) {
  session::Session* const session = session_for("tr_progress");
  if (session == nullptr) return TR_ERR_STATE;
  session->progress();
  return TR_OK;
}

int tr_should_stop(void) {
  session::Session* const session = session_for("tr_should_stop");
  if (session == nullptr) return 0;
  const Result<bool> stop = guarded([&] { return session->computing().should_stop(); });
  if (stop.is_ok()) return *stop ? 1 : 0;
  fail(stop.status().in("tr_should_stop"));
  // A program that asks in its loop does not look for errors here.
  if (session->rank() == 0) {
    log(LogLevel::error, tr_error());
    session->computing().note_printed();
  }
  return session->stops().is_stopping() || session->computing().broken() ? 1 : 0;
}

/// Without a session no rank knows of the others, so each waits for its turn. The launcher ends the others
/// once the first has left.
void tr_print_once_f(const char* text) {
  State& held = state();
  if (held.session != nullptr) return held.session->computing().print_once(text);
  if (held.last_rank < 0 && comm::mpi_is_running()) held.last_rank = comm::rank_in_world();
  std::this_thread::sleep_for(session::Computing::turn_of(held.last_rank));
  std::fprintf(stderr, "%s\n", text);
  std::this_thread::sleep_for(session::Computing::until_launchers_read);
}
