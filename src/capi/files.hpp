// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "files/file.hpp"
#include "tailrace.h"

/// What is common to the calls of C's stdio: handles, errno and the text for tr_error().
namespace tailrace::capi {

/// Collective when `comm` is seen for the first time. Its ranks as openers of files, or nullptr with errno.
std::shared_ptr<files::Group> group_of(MPI_Comm comm, const char* call);
/// The compute ranks' communicator; MPI_COMM_NULL outside of a session.
MPI_Comm session_comm();
/// A handle for an open file, which closes at the latest with the session.
tr_file* keep(std::unique_ptr<files::File> file);
/// A standard stream (0, 1, 2) of a group's I/O rank, if it is open; made if it is not.
tr_file* standard_file(const std::shared_ptr<files::Group>& group, int number);
tr_file* open_standard(const std::shared_ptr<files::Group>& group, int number);

/// The open file behind a handle, or nullptr with errno EBADF.
files::File* file_of(tr_file* handle, const char* call);
/// The errno that a status becomes.
int number_of(const Status& status);
/// Local. Keeps the text for tr_error() and sets errno.
void fail_with_errno(const Status& status);

/// An argument that a call does not take: told by the I/O rank to all, or by each rank to itself.
files::Outcome refused(std::int64_t value, int error, const std::string& text);
/// What a call of C's stdio returned; with errno if it failed and errno says why.
files::Outcome outcome_of(std::int64_t value, bool failed);

/// Collective over the file's ranks. Does `operation` on the I/O rank's stream; its outcome, and errno and
/// tr_error() after a failure, on every rank. errno is 0 when the operation begins.
files::Outcome ask(files::File& file, const char* call, const files::File::Operation& operation);
/// The same without a file, for a group.
files::Outcome ask(files::Group& group, const std::string& call,
                   const std::function<files::Outcome()>& operation);
/// Local. Does `operation` there without a result. Only files of the asynchronous mode do it later.
void tell(files::File& file, files::File::Operation operation);
/// Whether others than the I/O rank want what it read.
bool is_shared(const files::File& file);

}  // namespace tailrace::capi
