// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "faces/files/file.hpp"
#include "tailrace.h"

/// The parts that all calls of C's stdio share: handles, errno and the text for tr_error().
namespace tailrace::capi {

/// Returns the ranks of `comm` as a group that opens files, or nullptr with errno. Collective when it is
/// called for the first time for `comm`.
std::shared_ptr<files::Group> group_of(MPI_Comm comm, const char* call);
/// Returns the communicator of the compute ranks, or MPI_COMM_NULL outside of a session.
MPI_Comm session_comm();
/// Makes a handle for an open file. The session's end closes it at the latest.
tr_file* keep(std::unique_ptr<files::File> file);
/// Return a standard stream (0, 1, 2) of a group's I/O rank. open_standard() makes it when it is called for
/// the first time; standard_file() returns nullptr if it does not exist.
tr_file* standard_file(const std::shared_ptr<files::Group>& group, int number);
tr_file* open_standard(const std::shared_ptr<files::Group>& group, int number);

/// Returns the open file behind a handle, or nullptr with errno EBADF.
files::File* file_of(tr_file* handle, const char* call);
/// Returns the errno for a status.
int number_of(const Status& status);
/// Local. Keeps the text for tr_error() and sets errno.
void fail_with_errno(const Status& status);

/// Returns the outcome of a call that refuses an argument. The I/O rank tells it to all ranks; on local files
/// each rank has its own.
files::Outcome refused(std::int64_t value, int error, const std::string& text);
/// Returns the outcome of a call of C's stdio, with errno if the call failed and errno says why.
files::Outcome outcome_of(std::int64_t value, bool failed);
/// Returns the outcome of a call that returns a negative value, such as EOF, if it failed.
inline files::Outcome outcome_of(std::int64_t value) { return outcome_of(value, value < 0); }

/// How a call tells its failure.
enum class Failures {
  returned,  // by errno and tr_error()
  kept  // a call without a result: the file keeps the failure, and its next wait, flush or close returns it
};
/// Local. Tells the failure `status` as `failures` says. Does nothing if `status` is OK.
void settle(files::File& file, const Status& status, Failures failures);

/// Collective over the file's ranks. Runs `operation` on the I/O rank's stream. Returns its outcome on every
/// rank, with its failure settled.
files::Outcome ask(files::File& file, const char* call, const files::Operation& operation,
                   Failures failures = Failures::returned);
/// As ask(), for the file behind a handle. Returns only the value, or `failure` if there is no file.
std::int64_t ask_for_number(tr_file* handle, const char* call, std::int64_t failure,
                            const files::Operation& operation);
inline int ask_for_int(tr_file* handle, const char* call, int failure, const files::Operation& operation) {
  return static_cast<int>(ask_for_number(handle, call, failure, operation));
}
/// As ask(), for a group, without a file.
files::Outcome ask(files::Group& group, const std::string& call,
                   const std::function<files::Outcome()>& operation);
/// Local. Runs `operation` on the I/O rank's stream, without a result. Files of the asynchronous mode run it
/// later, others at once.
void tell(files::File& file, files::Operation operation);
/// True if ranks other than the I/O rank need the bytes that it read.
bool is_shared(const files::File& file);

}  // namespace tailrace::capi
