// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "faces/files/file.hpp"
#include "tailrace.h"

/// The parts that all calls of C's stdio share: handles, errno and the text for tr_error().
namespace tailrace::capi {

/// Collective when `comm` is seen for the first time. Returns its ranks as a group that opens files, or
/// nullptr with errno.
std::shared_ptr<files::Group> group_of(MPI_Comm comm, const char* call);
/// Returns the compute ranks' communicator; MPI_COMM_NULL outside of a session.
MPI_Comm session_comm();
/// Makes a handle for an open file. It closes at the latest with the session.
tr_file* keep(std::unique_ptr<files::File> file);
/// Returns a standard stream (0, 1, 2) of a group's I/O rank. The first call makes it.
tr_file* standard_file(const std::shared_ptr<files::Group>& group, int number);
tr_file* open_standard(const std::shared_ptr<files::Group>& group, int number);

/// Returns the open file behind a handle, or nullptr with errno EBADF.
files::File* file_of(tr_file* handle, const char* call);
/// Returns the errno for a status.
int number_of(const Status& status);
/// Local. Keeps the text for tr_error() and sets errno.
void fail_with_errno(const Status& status);

/// Makes the outcome for an argument that a call does not take. The I/O rank tells it to all, or each rank to
/// itself.
files::Outcome refused(std::int64_t value, int error, const std::string& text);
/// Makes the outcome of a call of C's stdio, with errno if the call failed and errno says why.
files::Outcome outcome_of(std::int64_t value, bool failed);
/// Makes the outcome of a call that returns a negative value, such as EOF, if it failed.
inline files::Outcome outcome_of(std::int64_t value) { return outcome_of(value, value < 0); }

/// Collective over the file's ranks. Does `operation` on the I/O rank's stream. Returns its outcome on every
/// rank, with errno and tr_error() after a failure.
files::Outcome ask(files::File& file, const char* call, const files::Operation& operation);
/// Does the same for the file behind a handle. Returns the value alone, or `failure` if there is no file.
std::int64_t ask_for_number(tr_file* handle, const char* call, std::int64_t failure,
                            const files::Operation& operation);
inline int ask_for_int(tr_file* handle, const char* call, int failure, const files::Operation& operation) {
  return static_cast<int>(ask_for_number(handle, call, failure, operation));
}
/// Does the same for a group, without a file.
files::Outcome ask(files::Group& group, const std::string& call,
                   const std::function<files::Outcome()>& operation);
/// Local. Does `operation` on the I/O rank's stream, without a result. Only files of the asynchronous mode do
/// it later.
void tell(files::File& file, files::Operation operation);
/// Returns true if ranks other than the I/O rank want the bytes that it read.
bool is_shared(const files::File& file);

}  // namespace tailrace::capi
