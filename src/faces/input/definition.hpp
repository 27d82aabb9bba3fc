// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/operations/interval.hpp"
#include "faces/streams/definition/pattern.hpp"
#include "formats/codec/definition.hpp"
#include "formats/sources/source.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/time_axis.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::input {

/// The files of an input stream, and their steps.
struct FilesDefinition {
  std::string pattern;
  DateTime base;
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;
  bool follows = false;
  bool is_linear = false;
  bool bridges = false;  // with is_linear: also interpolate over missing steps
  Index prefetch = 0;
  std::string cache;                // directory of kept inventories; "" = none
  std::vector<std::int64_t> leads;  // leads of the files' steps when the stream was opened, ascending
  /// The directory in which the first rank has opened the stream; ends in "/".
  std::string directory;
  TimeAxis time{};  // what leads count
  /// The program has named the unit of leads, or an index has told one shorter than a second: no time is
  /// rounded.
  bool is_told = false;

  [[nodiscard]] streams::PatternContext context() const { return {base, calendar, member, time}; }
  /// Returns the stream's lead of a time that lies `lead` on the axis `from`, which counts from a base time
  /// in seconds since 1970. Returns nothing if that is no whole number of the stream's units, or if one of
  /// the axes has times of a model alone.
  [[nodiscard]] std::optional<std::int64_t> lead_of(const TimeAxis& from, std::int64_t from_base,
                                                    std::int64_t lead) const;
  /// Returns the stream's lead of a record's time, as above.
  [[nodiscard]] std::optional<std::int64_t> lead_of(const sources::Inventory& inventory,
                                                    std::int64_t valid) const;
  /// Returns the second since 1970 of a record's time: the nearest one if the stream rounds the file's times,
  /// otherwise the last one up to it. Only for axes with a base time.
  [[nodiscard]] std::int64_t seconds_of(const sources::Inventory& inventory, std::int64_t time) const;
  /// Returns the number of steps that are in memory at a time.
  [[nodiscard]] Index slots() const {
    const Index wanted = prefetch + (is_linear ? 2 : 1);
    return follows ? wanted : std::clamp<Index>(std::ssize(leads), 1, wanted);
  }
  /// Returns the leads of the files' steps that make the step at `lead`: that step itself, or the two around
  /// it for interpolation. `there` are the leads that the files have. Returns nothing if the step may still
  /// come. Code::argument, listing the steps that there are, if it will not come, or if a step between the
  /// two seems to be missing.
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::span<const std::int64_t> there,
                                                         std::int64_t lead) const;
  /// Returns the lead of the first step that seems to be missing between the two around `lead`: one does if
  /// they are much further apart than the steps before and behind them. It may also be that steps become
  /// rarer from some lead on.
  [[nodiscard]] std::optional<std::int64_t> missing_step(std::span<const std::int64_t> there,
                                                         std::int64_t lead) const;
  /// Returns the weight of the step at `behind` for a lead between it and the step at `before`.
  [[nodiscard]] double weight(std::int64_t before, std::int64_t lead, std::int64_t behind) const;
  /// Returns `now`, the leads that make the step at `lead`, and then the leads to read ahead, together at
  /// most slots(). `now` is empty if the step may still come. `backward`: the program steps to earlier leads.
  [[nodiscard]] std::vector<std::int64_t> wanted(std::span<const std::int64_t> there,
                                                 std::vector<std::int64_t> now, std::int64_t lead,
                                                 bool backward) const;

  /// Returns the definition with absolute paths, for a process in another directory.
  [[nodiscard]] FilesDefinition from_root() const;

  void pack(Packer& out) const;
  static FilesDefinition unpack(Unpacker& in);
};

/// The program's choice among records of one field, level and time: a file may have several.
struct Choice {
  std::string statistic;  // a word of statistic=; "" = any
  std::optional<operations::IntervalLength> interval;
  std::optional<codec::Statistic> since;  // begin of the interval; none = any
  std::optional<double> percentile;
  codec::Keys keys;  // keys of the format

  void pack(Packer& out) const;
  static Choice unpack(Unpacker& in);
};

/// A field of an input stream, with all that the workers of a node need.
struct FieldDefinition {
  std::string name;  // name in the file
  codec::Levels levels;
  /// The program has named no level: if the file has only one, it is taken, whatever its type.
  bool takes_any_level = false;
  std::vector<Index> shape;
  ElementType type = ElementType::f32;
  layout::Box cut;  // the part that the ranks of the node need
  std::optional<double> missing;
  codec::Georeference georeference;  // without coordinates
  Choice choice;

  /// Returns the number of elements in `cut`.
  [[nodiscard]] Index elements() const;
  [[nodiscard]] Bytes level_bytes() const { return elements() * size_of(type); }

  void pack(Packer& out) const;
  static FieldDefinition unpack(Unpacker& in);
};

/// Returns "17 steps, from lead 0 s to 172800 s", for texts of errors.
std::string leads_text(std::span<const std::int64_t> leads, const TimeAxis& time);

}  // namespace tailrace::input
