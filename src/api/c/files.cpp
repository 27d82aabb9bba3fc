// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "api/c/files.hpp"

#include <array>
#include <cerrno>

#include "api/c/state.hpp"
#include "engine/exchange/channel.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::capi {

namespace {

constexpr std::array standard_names = {"stdin", "stdout", "stderr"};

std::FILE* standard_of_c(int number) { return number == 0 ? stdin : number == 1 ? stdout : stderr; }

tr_file* adopt_standard(const std::shared_ptr<files::Group>& group, int number) {
  files::Mode mode;
  mode.access = number == 0 ? files::Mode::Access::read : files::Mode::Access::write;
  tr_file* const handle =
      keep(files::File::adopt({state().file_service.get(), group, group->rank()},
                              standard_names[static_cast<std::size_t>(number)], mode, standard_of_c(number)));
  handle->standard = number;
  handle->group = group;
  return handle;
}

/// Returns the failure of an outcome.
Status status_of(const files::Outcome& outcome, const std::string& call) {
  if (outcome.error == 0) return {};
  const std::string_view text =
      outcome.text.empty() ? std::strerror(outcome.error) : std::string_view(outcome.text);
  return {Code::io, cat(call, ": ", text), outcome.error};
}

/// Sets errno and tr_error() from the outcome. `before` is the errno before the call, which stays after a
/// success.
void take_away(const files::Outcome& outcome, const std::string& call, int before) {
  errno = before;
  if (outcome.error != 0) fail_with_errno(status_of(outcome, call));
}

/// Collective. Allocates the memory for asynchronous array calls, if TAILRACE_IO_BUFFER is set. Otherwise the
/// first array call would wait for it, several times as long as its capture takes.
Status make_async_memory(files::Group& group) {
  if (state().session->settings().is_default("io_buffer")) return {};
  const Result<exchange::Channel*> channel = group.channel("tr_init");
  TR_TRY(channel.status());
  const Status made = (*channel)->ring(true).status();
  // Not an error here: a program that writes no array asynchronously does not need the memory. In other
  // programs the first array call fails.
  if (!made.is_ok()) log(LogLevel::info, cat("tr_init: ", made.text()));
  return {};
}

}  // namespace

int number_of(const Status& status) {
  if (status.error_number() > 0) return status.error_number();
  switch (status.code()) {
    case Code::space:
      return ENOSPC;
    case Code::memory:
      return ENOMEM;
    case Code::io:
      return EIO;
    case Code::unsupported:
      return ENOTSUP;
    default:
      return EINVAL;
  }
}

tr_file* keep(std::unique_ptr<files::File> file) {
  auto* const handle = new tr_file();
  handle->file = std::move(file);
  handle->name = handle->file->path();
  return state().files.emplace_back(handle);
}

tr_file* standard_file(const std::shared_ptr<files::Group>& group, int number) {
  for (tr_file* const handle : state().files) {
    if (handle->standard == number && handle->group == group) return handle;
  }
  return nullptr;
}

tr_file* open_standard(const std::shared_ptr<files::Group>& group, int number) {
  tr_file* const handle = standard_file(group, number);
  return handle != nullptr ? handle : adopt_standard(group, number);
}

Status begin_files() {
  State& held = state();
  held.file_service = std::make_unique<files::Service>(*held.session);
  held.outputs = std::make_unique<restart::Outputs>(*held.file_service, what_is_open);
  held.groups = std::make_unique<files::Groups>(*held.file_service, held.bootstrap->compute());
  const Result<std::shared_ptr<files::Group>> group = held.groups->of(held.bootstrap->compute(), "tr_init");
  TR_TRY(group.status());
  for (int number = 0; number < 3; ++number) adopt_standard(*group, number);
  return make_async_memory(**group);
}

Status end_files() {
  State& held = state();
  const Status first = close_all(held.files, [&](tr_file* open) {
    const std::unique_ptr<tr_file> handle = take_off(held.files, open);
    return handle->records ? handle->records->close() : handle->file->close();
  });
  held.groups.reset();
  // A warning that finds no memory is left out.
  static_cast<void>(guarded([&]() -> Status {
    if (held.outputs != nullptr) held.outputs->warn_of_left_streams();
    return {};
  }));
  held.outputs.reset();
  held.file_service.reset();
  return first;
}

std::shared_ptr<files::Group> group_of(MPI_Comm comm, const char* call) {
  if (session_for(call) == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  Result<std::shared_ptr<files::Group>> group = state().groups->of(comm, call);
  if (group.is_ok()) return std::move(*group);
  fail_with_errno(group.status().in(call));
  return nullptr;
}

MPI_Comm session_comm() { return state().session == nullptr ? MPI_COMM_NULL : state().bootstrap->compute(); }

files::File* file_of(tr_file* handle, const char* call) {
  const tr_file* const found = find_open(state().files, handle, call, "file");
  if (found != nullptr) return found->file.get();
  errno = EBADF;
  return nullptr;
}

void fail_with_errno(const Status& status) {
  fail(status);
  errno = number_of(status);
}

files::Outcome refused(std::int64_t value, int error, const std::string& text) {
  return {value, error, {}, text};
}

files::Outcome outcome_of(std::int64_t value, bool failed) { return {value, failed ? errno : 0, {}}; }

void settle(files::File& file, const Status& status, Failures failures) {
  if (status.is_ok()) return;
  if (failures == Failures::kept)
    file.stream().tasks().note(status);
  else
    fail_with_errno(status);
}

files::Outcome ask(files::File& file, const char* call, const files::Operation& operation,
                   Failures failures) {
  const int before = errno;
  const std::string what = cat(call, "(", file.path(), ")");
  files::Outcome outcome = file.ask(what, operation);
  errno = before;
  settle(file, status_of(outcome, what), failures);
  return outcome;
}

std::int64_t ask_for_number(tr_file* handle, const char* call, std::int64_t failure,
                            const files::Operation& operation) {
  files::File* const file = file_of(handle, call);
  return file == nullptr ? failure : ask(*file, call, operation).value;
}

files::Outcome ask(files::Group& group, const std::string& call,
                   const std::function<files::Outcome()>& operation) {
  const int before = errno;
  const bool attempts = group.is_io_rank() && !group.line().ended();
  files::Outcome outcome = group.share(attempts ? files::attempted(operation) : files::Outcome(), call);
  take_away(outcome, call, before);
  return outcome;
}

void tell(files::File& file, files::Operation operation) {
  const int before = errno;
  file.stream().tell(std::move(operation));
  errno = before;
}

bool is_shared(const files::File& file) {
  return file.owner().group != nullptr && file.owner().group->size() > 1;
}

}  // namespace tailrace::capi
