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
#include "ground/base/bytes.hpp"
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
  bool bridges = false;  // with is_linear: also over steps that are missing
  Index prefetch = 0;
  std::string cache;                // directory of inventories; "" = none
  std::vector<std::int64_t> leads;  // of the steps that the files had at the beginning, ascending
  std::string directory;            // in which the first rank has opened the stream; ends in "/"

  [[nodiscard]] streams::PatternContext context() const { return {base, calendar, member}; }
  [[nodiscard]] std::int64_t valid(std::int64_t lead) const { return to_seconds(base, calendar) + lead; }
  /// Returns how many steps are in memory at a time.
  [[nodiscard]] Index slots() const {
    const Index wanted = prefetch + (is_linear ? 2 : 1);
    return follows ? wanted : std::clamp<Index>(std::ssize(leads), 1, wanted);
  }
  /// Returns the steps of the files from which a step at `lead` is made, if the files have those that are
  /// `there`: one, or the two around it. Returns none if it may still come, and Code::argument, naming what
  /// there is, if it does not, or if a step between the two around it is missing.
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::span<const std::int64_t> there,
                                                         std::int64_t lead) const;
  /// Returns the first step that is missing between the two around `lead`, if they are much further apart
  /// than the steps before and behind them. Steps may come less often from some lead on.
  [[nodiscard]] static std::optional<std::int64_t> missing_step(std::span<const std::int64_t> there,
                                                                std::int64_t lead);
  /// Returns `now`, from which the step at `lead` is made, and behind them the steps to read ahead, at most
  /// slots() in all. `now` is empty if they may still come. `backward`: the steps come in falling order.
  [[nodiscard]] std::vector<std::int64_t> wanted(std::span<const std::int64_t> there,
                                                 std::vector<std::int64_t> now, std::int64_t lead,
                                                 bool backward) const;

  /// Returns the same files for a process in another directory.
  [[nodiscard]] FilesDefinition from_root() const;

  void pack(Packer& out) const;
  static FilesDefinition unpack(Unpacker& in);
};

/// The program's choice among records of one field, level and time, of which a file may have several.
struct Choice {
  std::string statistic;  // a word of statistic=; "" = any
  std::optional<operations::IntervalLength> interval;
  std::optional<codec::Statistic> since;  // where the interval begins; none = anywhere
  std::optional<double> percentile;
  codec::Keys keys;  // of the format

  void pack(Packer& out) const;
  static Choice unpack(Unpacker& in);
};

/// A field of an input stream, as the workers of a node need to know it.
struct FieldDefinition {
  std::string name;  // the file's
  codec::Levels levels;
  bool takes_any_level = false;  // the program has named none: one that is alone will do, of any type
  std::vector<Index> shape;
  ElementType type = ElementType::f32;
  layout::Box cut;  // what the ranks of the node need
  std::optional<double> missing;
  codec::Georeference georeference;  // without coordinates
  Choice choice;

  /// Returns the number of elements in `cut`.
  [[nodiscard]] Index elements() const;
  [[nodiscard]] Bytes level_bytes() const { return elements() * size_of(type); }

  void pack(Packer& out) const;
  static FieldDefinition unpack(Unpacker& in);
};

/// Returns "lead 0 s to 172800 s, 17 steps", for texts of errors.
std::string leads_text(std::span<const std::int64_t> leads);

}  // namespace tailrace::input
