// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "faces/checkpoint/compression.hpp"
#include "faces/checkpoint/format.hpp"
#include "ground/base/option_table.hpp"
#include "ground/journal/position.hpp"

namespace tailrace::checkpoint {

/// The options of a checkpoint, read from an options string.
struct Options {
  enum class Busy { wait, drop, replace };
  enum class Capture { copy, copy_on_write };
  int keep = 2;
  std::int64_t keep_every = 0;
  Mode mode = Mode::parallel;
  bool async = true;
  Busy busy = Busy::wait;
  Capture capture = Capture::copy;
  journal::Overwritten overwritten = journal::Overwritten::refuse;
  Compression compression;
  friend bool operator==(const Options&, const Options&) = default;
};

/// The keys of tr_checkpoint_create.
extern const OptionTable<Options> option_table;
/// Reads the options. Returns Code::settings for an unknown key or value; the text names the nearest valid
/// one.
Result<Options> parse_options(const std::string& text);

}  // namespace tailrace::checkpoint
