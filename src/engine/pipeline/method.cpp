// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/method.hpp"

#include <algorithm>
#include <array>

#include "formats/codec/codec.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::pipeline {

namespace {

/// A new method is a row here (src/engine/README.md). The first row is the default.
constexpr std::array method_rows{
    Method{.name = "scan",
           .meaning = "all servers encode and write, at offsets that follow from the sizes in put order",
           .deal = Deal::all,
           .make_placement = placement::make_placement,
           .make_writer = storage::open_file_writer},
    Method{.name = "serial",
           .meaning = "one server gathers, encodes and writes all records of the stream: a baseline",
           .deal = Deal::root,
           .make_placement = placement::make_placement,
           .make_writer = storage::open_file_writer},
    Method{.name = "offset_guard",
           .meaning = "one server gives out offsets as records become ready, all others encode and write",
           .deal = Deal::others,
           .make_placement = placement::make_placement_by_arrival,
           .make_writer = storage::open_file_writer,
           .has_any_order = true},
    Method{.name = "offset_sharing",
           .meaning =
               "all servers encode and write, at offsets that each takes by itself from a counter that "
               "they share",
           .deal = Deal::all,
           .make_placement = placement::make_placement_by_arrival,
           .make_writer = storage::open_file_writer,
           .has_any_order = true,
           .takes_offsets = true},
    Method{.name = "writer",
           .meaning = "all servers but one encode, and send the records to that one, which writes them",
           .deal = Deal::others,
           .make_placement = placement::make_placement,
           .make_writer = storage::open_file_writer,
           .is_sent = true},
    Method{.name = "writer_aio",
           .meaning =
               "as `writer`, and the one that writes has several writes of a file under way, by io_uring or "
               "else by POSIX AIO",
           .deal = Deal::others,
           .make_placement = placement::make_placement,
           .make_writer = storage::open_overlapping_writer,
           .is_sent = true,
           .is_overlapped = true},
    Method{.name = "mpiio",
           .meaning =
               "all servers encode, and write together by MPI-IO in rounds that the root tells them, at "
               "the offsets of `scan`",
           .deal = Deal::all,
           .make_placement = placement::make_placement,
           .make_writer = storage::open_file_writer,
           .is_collective = true},
    Method{.name = "mpiio_shared",
           .meaning =
               "all servers encode, and append by MPI-IO at the file pointer that they share, in turns that "
               "the root gives as records become ready",
           .deal = Deal::all,
           .make_placement = placement::make_placement_by_arrival,
           .make_writer = storage::open_file_writer,
           .has_any_order = true,
           .is_collective = true,
           .appends = true},
};

}  // namespace

std::span<const Method> methods() { return method_rows; }

const Method& default_method() { return method_rows.front(); }

const Method& default_method_of_one_writer() { return *std::ranges::find_if(method_rows, &Method::is_sent); }

Result<const Method*> find_method(std::string_view name) {
  if (name.empty()) return &default_method();
  const auto found = std::ranges::find(method_rows, name, &Method::name);
  if (found != method_rows.end()) return &*found;
  std::vector<std::string_view> names;
  for (const Method& each : method_rows) names.push_back(each.name);
  names.push_back(chosen_method);
  return unknown_word("method", name, names);
}

std::string about_methods() {
  std::string text;
  for (const Method& each : method_rows)
    text += cat(text.empty() ? "" : "; ", "`", each.name, "`: ", each.meaning);
  return text;
}

Result<comm::Hints> parse_hints(std::string_view text) {
  // Open MPI takes the shortest keys (MPI_MAX_INFO_KEY), and values of 255 characters (MPI_MAX_INFO_VAL).
  constexpr std::size_t longest_key = 35, longest_value = 255;
  const auto wrong = [&](std::string_view what) {
    return Status(Code::settings, cat("\"", text, "\" ", what,
                                      ": expected KEY=VALUE,..., as in cb_nodes=2,romio_cb_write=enable"));
  };
  comm::Hints hints;
  if (trim(text).empty()) return hints;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equals = word.find('=');
    const std::string key(trim(word.substr(0, equals)));
    if (equals == std::string::npos || key.empty()) return wrong(cat("has \"", word, "\", which is no hint"));
    const std::string value(trim(word.substr(equals + 1)));
    if (value.empty()) return wrong(cat("gives ", key, " no value"));
    if (key.size() > longest_key || value.size() > longest_value)
      return wrong(cat("has a key of more than ", longest_key, " characters, or a value of more than ",
                       longest_value));
    const auto is_same = [&](const auto& each) { return each.first == key; };
    if (std::ranges::any_of(hints, is_same)) return wrong(cat("has ", key, " twice"));
    hints.emplace_back(key, value);
  }
  return hints;
}

bool servers_take_offsets(const Method& method, const codec::Codec& codec) {
  return method.takes_offsets && !codec.fixed_places();
}

std::vector<int> owners_of(Deal deal, int servers, int root) {
  if (deal == Deal::root || (deal == Deal::others && servers == 1)) return {root};
  std::vector<int> owners;
  for (int server = 0; server < servers; ++server)
    if (deal == Deal::all || server != root) owners.push_back(server);
  return owners;
}

}  // namespace tailrace::pipeline
