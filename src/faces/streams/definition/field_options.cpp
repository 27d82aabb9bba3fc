// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The options of tr_stream_define.
#include <cmath>
#include <limits>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/definition/values.hpp"
#include "ground/base/options.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

constexpr std::int64_t kMostNproma = std::numeric_limits<int>::max();

Status take_accuracy(const std::string& text, std::optional<double>& accuracy) {
  const Result<double> value = parse_real(text);
  TR_TRY(value.status());
  if (!(*value > 0) || !std::isfinite(*value))
    return settings_error(cat(text, " is no accuracy; it must be above 0"));
  accuracy = *value;
  return {};
}

/// The share of the information that accuracy=auto keeps: 99 %, as in the paper that describes it.
constexpr double kUsualInformation = 0.99;

Status take_own_accuracy(codec::FieldDefinition& field, const std::string& text) {
  if (text != "auto") return take_accuracy(text, field.accuracy);
  field.information = kUsualInformation;
  return {};
}

Status take_information(codec::FieldDefinition& field, const std::string& text) {
  if (!field.information)
    return settings_error(
        "it is the share of its information that a field with accuracy=auto keeps: give "
        "accuracy=auto, or leave it out");
  const Result<double> share = parse_real(text);
  TR_TRY(share.status());
  if (!(*share > 0 && *share <= 1))
    return settings_error(cat(text, " is no share; it must be above 0 and at most 1, as 0.99"));
  field.information = *share;
  return {};
}

Status take_operation(FieldRequest& request, const std::string& text) {
  const auto& names = operations::operation_names;
  const Result<std::size_t> value = parse_choice(text, {names.begin(), names.end()});
  TR_TRY(value.status());
  request.operation = static_cast<operations::Operation>(*value);
  return {};
}

/// Returns an error if the interval of a field follows from its operation.
Status check_own_interval(const FieldRequest& request) {
  if (request.operation.value_or(operations::Operation::instant) == operations::Operation::instant) return {};
  return settings_error(cat(
      "it belongs to a statistic that the program makes itself; with operation=", name_of(*request.operation),
      " each interval of the stream is one: leave it out"));
}

Status take_own_since(FieldRequest& request, const std::string& text) {
  TR_TRY(check_own_interval(request));
  codec::Statistic& statistic = request.definition.statistic;
  if (statistic.process == codec::Process::instant) {
    return settings_error(
        "an instantaneous field has no interval; give statistic=accum, average, maximum or minimum too");
  }
  return take_since(statistic, text, request.time);
}

Status take_at_zero(FieldRequest& request, const std::string& text) {
  TR_TRY(check_own_interval(request));
  if (request.definition.statistic.process == codec::Process::instant) {
    return settings_error(
        "at_zero is about the empty interval of a statistic; an instantaneous field has none");
  }
  const Result<std::size_t> value = parse_choice(text, {"write", "omit"});
  TR_TRY(value.status());
  request.definition.statistic.write_at_zero = *value == 0;
  return {};
}

/// Takes the value of over=: OPERATION:NAME,NAME.
Status take_over(FieldRequest& request, const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view operation = trim(std::string_view(text).substr(0, colon));
  const auto& names = codec::reduction_names;
  const auto* const found = std::find(names.begin() + 1, names.end(), operation);
  if (found == names.end() || colon == text.size())
    return settings_error(
        cat("\"", text,
            "\" is no operation over dimensions: give mean, sum, minimum or maximum and the "
            "names of the dimensions, as mean:lat,lon"));
  request.definition.reduction.operation = static_cast<codec::Reduction::Operation>(found - names.begin());
  for (const std::string& each : split(std::string_view(text).substr(colon + 1), ',')) {
    request.lost.emplace_back(trim(each));
    if (request.lost.back().empty()) return settings_error("the name of a dimension is empty");
    if (std::ranges::count(request.lost, request.lost.back()) > 1)
      return settings_error(cat("dimension '", request.lost.back(), "' is named twice"));
  }
  return {};
}

Status take_level_axis(FieldRequest& request, const std::string& text) {
  // The array of several boxes has a dimension more than the layout. layout::memory_map() knows the array. A
  // scalar has no dimension.
  const auto dimensions = static_cast<std::int64_t>(request.definition.shape.size());
  const std::int64_t most = dimensions == 0 ? 0 : dimensions + 1;
  return take(parse_integer(text, 0, most), request.allocation.level_axis);
}

/// Takes the part of section= between two colons, if it is there.
Status take_index(const std::string& text, std::optional<Index>& out) {
  const std::string_view digits = trim(text);
  if (digits.empty()) return {};
  if (digits.starts_with('-'))
    return settings_error(told_order() == Order::c
                              ? cat(digits, " is below 0, where the indices of a dimension begin")
                              : std::string("a bound is below 1, where the indices of a dimension begin"));
  const Result<std::int64_t> index = parse_integer(digits, 0, std::numeric_limits<std::int64_t>::max());
  TR_TRY(index.status());
  out = *index;
  return {};
}

Status take_section(FieldRequest& request, const std::string& text) {
  const std::vector<std::string> all = split(text, ',');
  for (const std::string& each : all) {
    const std::vector<std::string> words = split(each, ':');
    if (words.size() < 2 || words.size() > 3)
      return settings_error(
          cat("\"", trim(each),
              "\" is no section of a dimension: give start:stop or start:stop:stride, as 10:84:2; stop is "
              "exclusive, \":\" is the whole dimension, \"5:6\" the one element 5"));
    SectionPart& part = request.section.emplace_back();
    std::optional<Index> stride;
    TR_TRY(take_index(words[0], part.start));
    TR_TRY(take_index(words[1], part.stop));
    const bool is_backwards = words.size() == 3 && trim(words[2]).starts_with('-');
    if (words.size() == 3 && !is_backwards) TR_TRY(take_index(words[2], stride));
    part.stride = is_backwards ? -1 : stride.value_or(1);
    // No bounds are quoted: those in `text` are C's, also where a program in Fortran gave others.
    if (part.stride < 1)
      return settings_error(cat("the stride ", trim(words[2]), " of ",
                                dimension_text(request.section.size() - 1, all.size()), " must be above 0"));
  }
  return {};
}

Status add_usual(FieldRequest& request, std::string_view name, const std::string& text) {
  return add_key(request.definition.attributes, {std::string(name), text});
}

// take() stores the values in this order, because an interval needs its statistic or its operation, and
// bottoms need the levels.
constexpr OptionRow<FieldRequest> kFieldRows[] = {
    {{"levels", "`surface`", "", "levels=pressure:1000,850,500",
      "type of level and its values: [below](#levels)"},
     [](auto& r, auto& t) { return take_levels(r.definition.levels, t); }},
    {{"bottom", "", "that of the levels", "levels=depthBelowLandLayer:0,0.1 bottom=0.1,0.4",
      "the bottoms of [layers](#levels), one for each level or one for all"},
     [](auto& r, auto& t) { return take_bottom(r.definition.levels, t); }},
    {{"coefficients", "", "Pa, 1", "levels=hybrid:1-2 coefficients=0,100,0,0,0.5,1",
      "a of all half levels, top first, then b"},
     [](auto& r, auto& t) { return take(parse_number_list(t), r.definition.levels.coefficients); }},
    {{"vertical", "", "Pa, 1", "levels=hybrid:1-2 vertical=vcoord.txt",
      "the same from a file: lines of `a b` or `n a b`, from the top; `#` begins a comment. Rank 0 reads it"},
     [](auto& r, auto& t) { return take_file(t, r.vertical_file); }},
    {{"accuracy", "", "the field's", "accuracy=0.01",
      "largest error that packing may make; the bits follow, for each record anew. Classic NetCDF holds all "
      "values as they are, which keeps any accuracy; [NetCDF-4](#netcdf-4) and Zarr round them. `auto`: each "
      "record keeps the bits that [carry information](#precision-by-information)"},
     [](auto& r, auto& t) { return take_own_accuracy(r.definition, t); }},
    {{"information", "`0.99`", "1", "accuracy=auto information=0.999",
      "the share of its information that a record keeps with [`accuracy=auto`](#precision-by-information)"},
     [](auto& r, auto& t) { return take_information(r.definition, t); }},
    {{"relative_accuracy", "", "1", "relative_accuracy=1e-4",
      "the same as a share of the record's largest magnitude"},
     [](auto& r, auto& t) { return take_accuracy(t, r.definition.relative_accuracy); }},
    {{"bits", "`16`", "bits a value", "bits=24",
      "1 to 32; at most one of these three is given. The default is that of GRIB. In classic NetCDF it "
      "changes nothing; in [NetCDF-4](#netcdf-4) and Zarr so many bits of the mantissa are kept, and all "
      "without it"},
     [](auto& r, auto& t) { return take(parse_integer(t, 1, 32), r.definition.bits); }},
    {{"missing", "", "the field's", "missing=-9999",
      "the value that means \"no value\", also `nan`. `TR_F32` fields hold the nearest `float` to it. In "
      "NetCDF and Zarr it is `_FillValue`. Without it NaN and infinity fail the step in GRIB "
      "(`TR_ERR_DATA`); other files hold them as they are"},
     [](auto& r, auto& t) { return take(parse_real(t), r.definition.missing); }},
    {{"operation", "`instant`", "", "operation=mean",
      "in a stream with `interval=`: what an [interval](#values-of-an-interval) gets: `mean`, `accum`, "
      "`minimum`, `maximum`, or the value of its last put"},
     take_operation},
    {{"over", "", "", "over=mean:lat,lon",
      "all but GRIB: `mean`, `sum`, `minimum` or `maximum` [over dimensions](#values-over-dimensions), which "
      "the field does not have in the file; `levels` stands for all levels"},
     take_over},
    {{"weights", "", "", "over=mean:lat,lon weights=area",
      "a field with `time=none` of the same stream: each element counts with [its weight](#weights) in the "
      "`mean` or `sum` of `over=`"},
     [](auto& r, auto& t) {
       r.weights = t;
       return Status();
     }},
    {{"statistic", "`instant`", "", "statistic=accum",
      "`instant`, `accum`, `average`, `maximum`, `minimum`: [below](#statistics)"},
     [](auto& r, auto& t) {
       return take(parse_choice(t, {statistic_words.begin(), statistic_words.end()}),
                   r.definition.statistic.process);
     }},
    {{"since", "`start`", "duration", "statistic=maximum since=6h",
      "where the statistic's interval begins: `start`, `last` or a duration"},
     take_own_since},
    {{"at_zero", "`write`", "", "statistic=accum at_zero=omit",
      "the empty interval at lead 0: a record, or none"},
     take_at_zero},
    {{"level_axis", "`0`", "", "levels=height:50,100 level_axis=2",
      "the dimension of the array that counts the levels, in C order: 0 is the slowest, here 2 the fastest"},
     take_level_axis},
    {{"nproma", "", "elements", "levels=height:50,100 nproma=16",
      "the array is (block, level, nproma), in Fortran `(nproma, level, block)`; the last block may be "
      "short"},
     [](auto& r, auto& t) { return take(parse_integer(t, 1, kMostNproma), r.allocation.nproma); }},
    {{"section", "all of it", "", "section=::2,1:7:3",
      "the part of the array that the files hold, [below](#a-coarser-or-smaller-output): start:stop:stride "
      "for "
      "each dimension of the layout, slowest first, counted from 0; stop is exclusive. What is left out is "
      "that "
      "of the whole dimension: `:`, `5:`, `::2`"},
     take_section},
    {{"time", "", "", "time=none",
      "NetCDF, NetCDF-4 and Zarr: the field has no [time](#fields-without-time), as a land mask has none. It "
      "is put once, before the first step, and each file has it"},
     [](auto& r, auto& t) {
       r.definition.has_time = false;
       return parse_choice(t, {"none"}).status();
     }},
    {{"keys", "", "", "keys=\"parameterCategory=0, parameterNumber=0\"", "GRIB alone: keys of this field"},
     [](auto& r, auto& t) { return take_keys(t, r.definition.keys); }},
    {{"standard_name", "", "", "standard_name=air_temperature",
      "the name of the quantity in the CF conventions: an [attribute](#attributes) of the field's variable. "
      "GRIB and raw files leave it out"},
     [](auto& r, auto& t) { return add_usual(r, "standard_name", t); }},
    {{"long_name", "", "", "long_name=\"air temperature\"", "likewise, a name for people"},
     [](auto& r, auto& t) { return add_usual(r, "long_name", t); }},
    {{"units", "", "", "units=K",
      "likewise, the units of the values, as UDUNITS writes them; no value is converted"},
     [](auto& r, auto& t) { return add_usual(r, "units", t); }},
    {{"attributes", "", "", "attributes=\"comment='dry air', valid_min=0\"",
      "NetCDF and Zarr alone: other [attributes](#attributes) of the field's variable"},
     [](auto& r, auto& t) { return take_keys(t, r.definition.attributes); }},
};

// Options that only some formats have. take_others() stores their values as keys of the format.
constexpr OptionInfo kFieldOptionsOfFormats[] = {
    {"compress", "that of the stream", "", "compress=none",
     "NetCDF-4 and Zarr alone: how the field's chunks are compressed, as in the options of a stream"},
    {"chunks", "", "elements", "chunks=100x200",
     "NetCDF-4 and Zarr alone: shape of the chunks into which each level is cut, one number for each "
     "dimension that the variable has in the file beside time and levels, slowest first; at most 65,536 "
     "chunks, and in Zarr 1,048,576 in all levels of a field. Without it a level is one chunk"}};

}  // namespace

constexpr OptionTable<FieldRequest> field_options(kFieldRows);

std::vector<OptionInfo> field_option_infos() { return field_options.infos(kFieldOptionsOfFormats); }

Result<std::optional<layout::Section>> resolve_section(const std::vector<SectionPart>& parts,
                                                       const std::vector<Index>& shape) {
  if (parts.empty()) return std::optional<layout::Section>();
  const std::size_t dimensions = shape.size();
  if (parts.size() != dimensions)
    return settings_error(cat("section= has ", counted(parts.size(), "part"), ", and the layout has ",
                              counted(dimensions, "dimension"),
                              dimensions == 0 ? std::string(": leave it out")
                                              : cat(" (", extents(shape), ", ", order_text(),
                                                    "): give start:stop:stride for each")));
  layout::Section section;
  bool is_whole = true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const SectionPart& part = parts[d];
    const Index start = part.start.value_or(0), stop = part.stop.value_or(shape[d]);
    const auto wrong = [&](const std::string& why) {
      return settings_error(cat("section=: ", told_index(start), ":", stop, ":", part.stride, " of ",
                                dimension_text(d, dimensions), " ", why, " (the array is ", extents(shape),
                                ", ", order_text(), ")"));
    };
    if (stop > shape[d])
      return wrong(cat("stops beyond its ", counted(shape[d], "element"),
                       told_order() == Order::c ? "; stop is exclusive" : ""));
    if (start >= stop) return wrong("has no element");
    const Index count = (stop - start - 1) / part.stride + 1;
    section.start.push_back(start);
    section.stride.push_back(count > 1 ? part.stride : 1);
    section.stop.push_back(start + (count - 1) * section.stride.back() + 1);
    is_whole = is_whole && count == shape[d];
  }
  return is_whole ? std::optional<layout::Section>() : section;
}

Status take_since(codec::Statistic& statistic, const std::string& text, const TimeAxis& time) {
  using Since = codec::Statistic::Since;
  if (text == "start" || text == "last") {
    statistic.since = text == "start" ? Since::start : Since::last_output;
    return {};
  }
  if (time.is_model())
    return settings_error(
        cat("\"", text, "\": with time=model an interval begins at `start` or `last` alone"));
  const Result<std::int64_t> value = time.parse_length(text);
  if (!value.is_ok() || *value == 0) {
    return settings_error(cat("\"", text, "\" is neither start nor last nor a duration such as 6h"));
  }
  statistic.since = Since::duration;
  statistic.duration = *value;
  return {};
}

}  // namespace tailrace::streams
