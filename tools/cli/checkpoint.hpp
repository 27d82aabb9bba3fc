// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What the commands below `tailrace checkpoint` share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/copy.hpp"
#include "checkpoint/slots.hpp"
#include "storage/target.hpp"

namespace tailrace::cli {

/// What these commands tell their shell, as diff and cmp do. Documented in --help and docs/cli.md.
enum Answer : int {
  fine = 0,
  differs = 1,  // damaged, or not the same
  trouble = 2,  // the command line makes no sense, or a file cannot be read or written
};

/// Prints the error of `command` to standard error; the answer that fits it.
int report_checkpoint(const char* command, const Status& status);
/// Runs `body`, whose return value is an answer; what is thrown is reported.
int answer_of(const char* command, const std::function<int()>& body);

/// The copies that `text` means: those of the checkpoint of that name, or the one at that path.
Result<std::vector<std::string>> copies_named(storage::Target& target, const std::string& text);
/// Of those the newest that is whole. Code::corrupt if there is none.
Result<checkpoint::Copy> newest_copy(storage::Target& target, const std::string& text);
/// Whether it is the bytes of a copy that are wrong, and not storage that does not give them.
bool is_damage(storage::Target& target, const checkpoint::Found& found);

/// Of all files of the copy at `path`.
Bytes bytes_of_files(storage::Target& target, const std::string& path);
/// "2026-03-01T00:00:00Z"
std::string saved_text(std::int64_t saved_at);
std::string_view mode_text(checkpoint::Mode mode);

/// Elements [begin, begin + count) of an item, in the order of the global array, into `out`.
Status read_elements(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item, Index begin,
                     Index count, std::byte* out);
/// As many elements as fit into the memory that a command takes.
Index elements_at_once(ElementType type);
/// One element as text.
std::string value_text(ElementType type, const std::byte* value);
/// The index of each dimension of an element: "(1, 0, 7)".
std::string index_text(const std::vector<Index>& shape, Index element);

/// An item's elements as NetCDF at `path`, new. Code::unsupported in a build without it.
Status write_netcdf(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item,
                    const std::string& path);

void add_checkpoint_ls(CLI::App& app, int& exit);
void add_checkpoint_show(CLI::App& app, int& exit);
void add_checkpoint_verify(CLI::App& app, int& exit);
void add_checkpoint_diff(CLI::App& app, int& exit);
void add_checkpoint_extract(CLI::App& app, int& exit);
void add_checkpoint_prune(CLI::App& app, int& exit);

}  // namespace tailrace::cli
