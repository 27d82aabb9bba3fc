// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

/// The messages between processes and the keeper: the process sends a request, and the keeper one answer,
/// over a UNIX socket of packets (SOCK_SEQPACKET). Offsets and sizes are in bytes.
namespace tailrace::run {

/// The environment variables of a preloaded program. Their names must not begin with TAILRACE_, since the
/// library takes all variables with such names for settings.
constexpr const char* socket_variable = "TR_RUN_SOCKET";    // the name of the keeper's socket
constexpr const char* patterns_variable = "TR_RUN_SHARED";  // the patterns of --shared, a line each
constexpr const char* hello_variable = "TR_RUN_HELLO";      // the process that says hello when it starts

/// The kinds of requests, and for each the members of Request that it uses. `file` is the number of a file,
/// or where it is said of a description.
enum class Op : std::uint32_t {
  // A `tailrace run` joins its group. text: the group's name. EEXIST if the keeper is of another group.
  join,
  // The program of a `tailrace run` has ended. The keeper answers once all that the program wrote is stored.
  leave,
  // A program has begun. a: 1 if `tailrace run` itself has started it. The answer has the arena's descriptor.
  hello,
  // A program has opened a file, whose descriptor it sends. a: the flags of open, b: the placeholder's inode,
  // text: the path.
  open,
  // A program has inherited a placeholder. b: its inode.
  attach,
  // The process has closed its last descriptor of a description. file: the description.
  close,
  // A program needs bytes of a page. file; a: the page, from, to: the bytes; b: 1 to write them; c: 1 if the
  // holder of the page's frame does not go on.
  bring_in,
  // The file gets another size. file; a: the size.
  cut,
  // The keeper stores the file's changed pages. file; a: 1 to synchronise the file, too.
  sync,
  // Storage makes room for the file. file; from byte a to before byte b.
  reserve,
  // The answer has the file's descriptor. file.
  lend,
  // The answer has a descriptor by which the program locks the file. file: a description; a: 1 for locks of
  // the process, 0 for locks of the description.
  lend_lock,
  // The locks of this process on the file end. file.
  unlock,
};

struct Request {
  Op op = Op::hello;
  std::uint32_t file = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  char text[4096] = {};
};

/// Errors of the keeper's own. After page_moved the program asks again at once, after too_many_left a while
/// later.
constexpr int page_moved = -1;     // the page has, or is about to get, another frame
constexpr int too_many_left = -2;  // too many frames have holders that do not go on

struct Answer {
  std::int32_t error = 0;  // an errno, or an error above; EXDEV for a process in another PID namespace
  std::uint32_t file = 0;
  std::uint32_t description = 0;
  std::uint32_t process = 0;
  std::uint64_t bytes = 0;  // the size of the arena
};

}  // namespace tailrace::run
