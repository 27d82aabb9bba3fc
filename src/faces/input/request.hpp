// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faces/input/definition.hpp"
#include "faces/streams/definition/pattern.hpp"
#include "formats/codec/definition.hpp"
#include "ground/base/option_table.hpp"
#include "ground/layout/memory.hpp"

// Turns the options strings of input streams into types. Every function is local, reads no file and gives the
// same result on every rank that passes the same text. Errors are Code::settings unless said otherwise.
namespace tailrace::input {

/// The options of tr_stream_open.
struct OpenRequest {
  streams::Pattern pattern;
  std::optional<DateTime> base;  // none: taken from the files
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;
  Index prefetch = 2;      // steps that are read ahead
  bool is_linear = false;  // leads between two steps of the files are interpolated
  bool bridges = false;    // also if a step between the two is missing
  bool follows = false;    // wait for a step that does not exist yet
  std::optional<std::int64_t> timeout_seconds;
  TimeAxis time{};       // what leads count
  bool is_told = false;  // time= or lead_unit= is given; otherwise the files tell
};

/// The keys of tr_stream_open.
extern const OptionTable<OpenRequest> open_options;

Result<OpenRequest> parse_open(std::string_view pattern, std::string_view options);

/// The options of tr_stream_define of an input stream.
struct FieldRequest {
  std::string name;     // name in the program
  std::string in_file;  // name in the file
  ElementType type = ElementType::f32;
  std::vector<Index> shape;
  codec::Levels levels;
  bool takes_any_level = false;   // levels= is not given
  std::optional<double> missing;  // stored where the file has no value
  Choice choice;                  // among records
  layout::Allocation allocation;  // without the halo, which belongs to the layout
};

/// The keys of tr_stream_define of an input stream that say what is read.
extern const OptionTable<FieldRequest> field_options;

/// Returns the request in an options text. Options that only output has are accepted and ignored, so that one
/// text serves both; keys of a format choose records. Code::argument for complex numbers.
Result<FieldRequest> parse_field(std::string_view name, int element_type, const std::vector<Index>& shape,
                                 std::string_view options);

}  // namespace tailrace::input
