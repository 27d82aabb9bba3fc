// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Functions that the subcommands of `tailrace checkpoint` share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "faces/checkpoint/copy.hpp"
#include "faces/checkpoint/slots.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::cli {

/// The exit codes of these subcommands, which are as those of diff and cmp. Documented in --help and
/// docs/cli.md.
enum Answer : int {
  fine = 0,
  differs = 1,  // damaged, or not the same
  trouble = 2,  // the command line makes no sense, or a file cannot be read or written
};

/// Prints the error of `command` to standard error. Returns the answer that fits it.
int report_checkpoint(const char* command, const Status& status);
/// Runs `body`, and returns its answer. If `body` throws an exception, reports it, and returns the answer for
/// it.
int answer_of(const char* command, const std::function<int()>& body);

/// Returns the paths of the copies that `text` names. It may be the path of one copy, or the name of a
/// checkpoint with all its copies.
Result<std::vector<std::string>> copies_named(storage::Target& target, const std::string& text);
/// Returns the newest whole copy of those that copies_named() finds. Returns Code::corrupt if none is whole,
/// or Code::io if a single copy cannot be read.
Result<checkpoint::Copy> newest_copy(storage::Target& target, const std::string& text);
/// True if the copy is damaged, false if it is whole or storage does not let this user read it.
bool is_damage(storage::Target& target, const checkpoint::Found& found);

/// Returns the bytes of all files of the copy at `path`.
Bytes bytes_of_files(storage::Target& target, const std::string& path);
/// Returns a time such as "2026-03-01T00:00:00Z" from seconds since 1970.
std::string saved_text(std::int64_t saved_at);
std::string_view mode_text(checkpoint::Mode mode);

/// Reads elements [begin, begin + count) of an item, in the order of the global array, into `out`.
Status read_elements(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item, Index begin,
                     Index count, std::byte* out);
/// Returns how many elements a command reads into memory at a time.
Index elements_at_once(ElementType type);
/// Returns one element as text.
std::string value_text(ElementType type, const std::byte* value);
/// Returns the indices of an element in each dimension, such as "(1, 0, 7)", from its number.
std::string index_text(const std::vector<Index>& shape, Index element);

/// Writes an item's elements as NetCDF to `path`, a new file. Returns Code::unsupported in a build without
/// NetCDF.
Status write_netcdf(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item,
                    const std::string& path);

void add_checkpoint_ls(CLI::App& app, int& exit);
void add_checkpoint_show(CLI::App& app, int& exit);
void add_checkpoint_verify(CLI::App& app, int& exit);
void add_checkpoint_diff(CLI::App& app, int& exit);
void add_checkpoint_extract(CLI::App& app, int& exit);
void add_checkpoint_prune(CLI::App& app, int& exit);
void add_checkpoint_forget(CLI::App& app, int& exit);

}  // namespace tailrace::cli
