// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/placement/placement.hpp"
#include "ground/base/status.hpp"
#include "ground/comm/collective/collective_files.hpp"
#include "ground/storage/writer.hpp"

namespace tailrace::pipeline {

/// The servers to which the root deals the records of a stream. Each encodes what it gets.
enum class Deal {
  all,     // all servers in turn
  root,    // the root alone
  others,  // all servers but the root, in turn; the root, if there is no other
};

/// How the records of a stream get their offsets, and how their bytes come to its files: a row of the table
/// in method.cpp.
struct Method {
  std::string_view name;
  std::string_view meaning;  // as docs/streams.md says it
  Deal deal = Deal::all;
  std::unique_ptr<placement::Placement> (*make_placement)(const codec::Codec& codec);
  storage::MakeWriter make_writer;
  bool has_any_order = false;  // records of a step stand as they became ready, if their format has no places
  bool is_sent = false;        // the root writes: servers send it what they have encoded
  bool is_overlapped = false;  // the writes of several chunks are under way: storage::Writer::begin()
  /// All servers write together, by comm::CollectiveFiles, when the root says so. `make_writer` is not used.
  bool is_collective = false;
  /// Servers give the records that they have encoded their offsets themselves, from a counter at the root
  /// (comm::Counters), if the format has no places. `make_placement` serves the other formats.
  bool takes_offsets = false;
  /// With `is_collective`: servers write at the shared file pointer, one after another as the root gives
  /// turns. Not for formats with places for records.
  bool appends = false;

  /// True if one server alone writes the bytes of a file, as storage needs it that takes objects as a whole.
  [[nodiscard]] constexpr bool has_one_writer() const { return deal == Deal::root || is_sent; }
};
std::span<const Method> methods();
/// The name by which a stream leaves its method to choose_method() (method_choice.hpp).
inline constexpr std::string_view chosen_method = "auto";
/// Returns the method that counts where nobody has chosen one.
const Method& default_method();
/// Returns the method that counts among whole objects where nobody has chosen one.
const Method& default_method_of_one_writer();
/// Local. Returns Code::settings, with the nearest name, if no method is called so. "" is the default method.
Result<const Method*> find_method(std::string_view name);
/// Returns what docs/streams.md says of all methods, separated by "; ".
std::string about_methods();

/// Reads hints for collective files, "cb_nodes=2,romio_cb_write=enable". Returns Code::settings if the text
/// is no list of keys and values.
Result<comm::Hints> parse_hints(std::string_view text);

/// Returns true if the servers of a stream take offsets by themselves.
bool servers_take_offsets(const Method& method, const codec::Codec& codec);

/// Returns the servers that own records, each once, if `root` is the stream's root.
std::vector<int> owners_of(Deal deal, int servers, int root);

}  // namespace tailrace::pipeline
