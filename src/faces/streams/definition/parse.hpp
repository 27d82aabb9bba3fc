// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/operations/accumulator.hpp"
#include "engine/operations/interval.hpp"
#include "engine/pipeline/policy.hpp"
#include "faces/streams/definition/pattern.hpp"
#include "formats/codec/definition.hpp"
#include "formats/codec/listing.hpp"
#include "ground/base/option_table.hpp"
#include "ground/layout/memory.hpp"

// Turns the options strings of include/tailrace.h into the types of the core. Every function is local, reads
// no file and gives the same result on every rank that passes the same text. Errors are Code::settings unless
// said otherwise.
namespace tailrace::streams {

/// The words of existing=; `resume` is "continue". Only overwrite empties a file that is not known to be
/// Tailrace's.
enum class Existing { replace, resume, fail, overwrite };

/// The options of a stream besides those that describe the content of its files.
struct StreamOptions {
  Existing existing = Existing::replace;
  pipeline::Policy policy;                             // on_full= and deadline=
  std::string method;                                  // of pipeline::methods(); "" = as the setting says
  std::string handoff;                                 // of pipeline::handoffs(); "" = as the setting says
  std::string hints;                                   // as pipeline::parse_hints() reads them
  std::string ready_suffix;                            // "" = no ready marker
  std::string hook;                                    // command run when a file is finished; "" = none
  std::optional<bool> manifest;                        // none = where the build can
  bool references = false;                             // a reference file beside each data file
  std::vector<codec::Listing> listings;                // beside each data file, as index= asks for them
  bool keeps_same_lead = false;                        // a field may be put twice at one lead
  bool keeps_empty_steps = false;                      // a step without a put is intended
  std::optional<operations::IntervalLength> interval;  // none = every step is written
};

struct StreamRequest {
  Pattern pattern;
  codec::StreamDefinition definition;
  StreamOptions options;
  std::vector<std::string> open_keys;  // keys of the format that stand by themselves, not within keys=
  bool has_default_format = false;     // neither format= nor the name asks for one
  /// Returns the context for Pattern::expand and match.
  [[nodiscard]] PatternContext context() const {
    return {definition.base, definition.calendar, definition.member, definition.time};
  }
};

/// Parses the options of tr_stream_create. A key that is not reserved counts as a key of the format, if the
/// format takes keys and the key is no slip of a reserved one.
Result<StreamRequest> parse_stream(std::string_view pattern, std::string_view options);

/// Parses the value of lead_unit=, for a stream whose time= has given the axis `time`.
Result<TimeAxis> parse_lead_unit(const std::string& text, const TimeAxis& time);

/// The keys of tr_stream_create that all formats know.
extern const OptionTable<StreamRequest> stream_options;
/// Returns what docs/streams.md says of the keys of tr_stream_create, with those that only some formats have.
std::vector<OptionInfo> stream_option_infos();

/// One dimension of section=, as the option has it.
struct SectionPart {
  std::optional<Index> start, stop;  // none: those of the whole dimension
  Index stride = 1;
};

struct FieldRequest {
  codec::FieldDefinition definition;               // without the georeference, which belongs to the layout
  layout::Allocation allocation;                   // without the halo, which belongs to the layout, too
  std::string vertical_file;                       // one rank reads it and calls set_vertical; "" = none
  std::optional<operations::Operation> operation;  // over the steps of an interval
  bool has_statistic = false;                      // statistic= is given
  TimeAxis time{};                                 // of the stream
  std::vector<std::string> lost{};     // the dimensions of over=, whose operation the definition has
  std::string weights{};               // the field of weights=
  std::vector<SectionPart> section{};  // slowest dimension first; empty = the whole array
};

/// Parses the options of tr_stream_define, for a stream of `format`. `shape` is the layout's. One level means
/// an array without a level dimension, unless level_axis= says otherwise.
Result<FieldRequest> parse_field(std::string_view name, int element_type, const std::vector<Index>& shape,
                                 std::string_view options, std::string_view format,
                                 const TimeAxis& time = {});

/// Returns the section that a definition asks for of an array of this shape, or nothing if that is the whole
/// array. Sections that have the same elements are equal.
Result<std::optional<layout::Section>> resolve_section(const std::vector<SectionPart>& parts,
                                                       const std::vector<Index>& shape);

/// The keys of tr_stream_define that all formats know.
extern const OptionTable<FieldRequest> field_options;
/// Attributes of a field that are options by themselves. Formats without attributes leave them out.
inline constexpr std::array<std::string_view, 3> usual_attributes{"units", "standard_name", "long_name"};
/// Returns what docs/streams.md says of the keys of tr_stream_define, with those that only some formats have.
std::vector<OptionInfo> field_option_infos();

/// Returns true if streams of `format` take the option `key` of tr_stream_define.
bool takes_field_option(std::string_view format, std::string_view key);

/// The words of statistic=, in the order of codec::Process.
inline constexpr std::array<std::string_view, 5> statistic_words{"instant", "accum", "average", "maximum",
                                                                 "minimum"};
/// Takes the value of since=: `start`, `last` or a duration.
Status take_since(codec::Statistic& statistic, const std::string& text, const TimeAxis& time = {});

/// Returns true if the text is UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// Returns `status`. If it is an error, and nobody asked for the stream's format, its text also says why the
/// stream has this format.
Status with_default_format(const StreamRequest& request, const Status& status);

/// Returns the error of a call that names a field which was not defined.
Status no_such_field(std::string_view call, std::string_view name, const std::vector<std::string>& defined);

/// Returns the text up to the next line's end, and passes it.
std::string_view take_line(std::string_view& text);

/// Takes the coefficients from the text of a vertical= file: lines of "a b", or "n a b" with n counting up by
/// one; "#" begins a comment. `path` is for messages.
Status set_vertical(codec::FieldDefinition& definition, std::string_view text, std::string_view path);

/// Parses the names of a layout's dimensions, "z,x", slowest first. Code::argument unless there is one name
/// for each dimension, and no name comes twice.
Result<std::vector<std::string>> parse_dimensions(std::string_view text, const std::vector<Index>& shape);

extern const OptionTable<codec::Keys> axis_options;
/// Parses the options of tr_layout_axis into attributes, each as it is given: units=, axis=, standard_name=,
/// long_name=, positive= and others within attributes="...".
Result<codec::Keys> parse_axis(std::string_view options);

struct GeoreferenceRequest {
  std::string sample_file;  // one rank reads it; "" = none
  codec::Keys keys;
};

/// The keys of tr_layout_georeference. Any other is a key of the grid.
extern const OptionTable<GeoreferenceRequest> georeference_options;
/// Parses the options of tr_layout_georeference.
Result<GeoreferenceRequest> parse_georeference(std::string_view options);

}  // namespace tailrace::streams
