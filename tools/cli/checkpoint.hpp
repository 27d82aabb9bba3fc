// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The parts that the commands below `tailrace checkpoint` share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faces/checkpoint/copy.hpp"
#include "faces/checkpoint/slots.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::cli {

/// The answers of these commands to their shell, as diff and cmp give them. Documented in --help and
/// docs/cli.md.
enum Answer : int {
  fine = 0,
  differs = 1,  // damaged, or not the same
  trouble = 2,  // the command line makes no sense, or a file cannot be read or written
};

/// Prints the error of `command` to standard error. Returns the answer that fits it.
int report_checkpoint(const char* command, const Status& status);
/// Runs `body`, which returns an answer. Reports an exception.
int answer_of(const char* command, const std::function<int()>& body);

/// Returns the copies that `text` means: those of the checkpoint of that name, or the one at that path.
Result<std::vector<std::string>> copies_named(storage::Target& target, const std::string& text);
/// Returns the newest of those copies that is whole, or Code::corrupt if there is none.
Result<checkpoint::Copy> newest_copy(storage::Target& target, const std::string& text);
/// Returns true if the bytes of a copy are wrong, false if storage does not give them.
bool is_damage(storage::Target& target, const checkpoint::Found& found);

/// Returns the bytes of all files of the copy at `path`.
Bytes bytes_of_files(storage::Target& target, const std::string& path);
/// "2026-03-01T00:00:00Z"
std::string saved_text(std::int64_t saved_at);
std::string_view mode_text(checkpoint::Mode mode);

/// Reads elements [begin, begin + count) of an item, in the order of the global array, into `out`.
Status read_elements(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item, Index begin,
                     Index count, std::byte* out);
/// Returns how many elements fit into the memory that a command takes.
Index elements_at_once(ElementType type);
/// Returns one element as text.
std::string value_text(ElementType type, const std::byte* value);
/// Returns the index of each dimension of an element: "(1, 0, 7)".
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

}  // namespace tailrace::cli
