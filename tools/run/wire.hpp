// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

/// The messages between programs and the keeper: one request, one answer, over a UNIX socket of packets
/// (SOCK_SEQPACKET). Offsets and sizes are in bytes.
namespace tailrace::run {

/// The environment of a program that is preloaded. The names must not begin with TAILRACE_: the library takes
/// those for settings.
constexpr const char* socket_variable = "TR_RUN_SOCKET";    // the name of the keeper's socket
constexpr const char* patterns_variable = "TR_RUN_SHARED";  // the patterns, a line each
constexpr const char* hello_variable = "TR_RUN_HELLO";      // the process that is to say hello when it starts

enum class Op : std::uint32_t {
  join,      // a `tailrace run` is there; text: the name of its group. EEXIST: the keeper is of another group
  leave,     // its program has ended; answered when what ended with it is stored
  hello,     // a program has begun; the answer has the arena's descriptor. a: 1 if it is the one that was
             // started
  open,      // a descriptor of the file; a: flags of open, b: inode of the placeholder, text: the path
  attach,    // b: inode of a placeholder that was inherited
  close,     // file: a description of which this process has no descriptor any more
  bring_in,  // file, a: page, from, to: its bytes; b: 1 to write them; c: 1 if the holder of its frame does
             // not go on
  cut,       // file, a: size
  sync,      // file; a: 0 store, 1 and synchronise
  reserve,   // file, a: from, b: to: room on storage
  lend,      // file; the answer has its descriptor
  lend_lock,  // file: a description, a: 1 for locks of this process; the answer has a descriptor to lock by
  unlock,     // file: locks of this process on it end
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

/// Errors of the keeper's own: ask again, at once or after a while.
constexpr int page_moved = -1;     // it has, or is about to get, another frame
constexpr int too_many_left = -2;  // frames whose holders do not go on

struct Answer {
  std::int32_t error = 0;  // an errno, or one of those above; EXDEV to whoever is in another PID namespace
  std::uint32_t file = 0;
  std::uint32_t description = 0;
  std::uint32_t process = 0;
  std::uint64_t bytes = 0;  // of the arena
};

}  // namespace tailrace::run
