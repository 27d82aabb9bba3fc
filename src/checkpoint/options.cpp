// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "base/options.hpp"

#include "base/text.hpp"
#include "checkpoint/context.hpp"

namespace tailrace::checkpoint {

namespace {

Status set(Options& options, const Option& option) {
  static const std::vector<std::string_view> keys = {"keep", "keep_every", "mode",        "async",
                                                     "busy", "capture",    "overwritten", "compress"};
  const Result<std::size_t> key = parse_choice(option.key, keys);
  TR_TRY(key.status());
  const std::string& value = option.value;
  switch (*key) {
    case 0: {
      const Result<std::int64_t> keep = parse_integer(value, 2, 1000);
      TR_TRY(keep.status());
      options.keep = static_cast<int>(*keep);
      return {};
    }
    case 1: {
      const Result<std::int64_t> every = parse_integer(value, 0, std::int64_t{1} << 40);
      TR_TRY(every.status());
      options.keep_every = *every;
      return {};
    }
    case 2: {
      const Result<std::size_t> mode = parse_choice(value, {"parallel", "local"});
      TR_TRY(mode.status());
      options.mode = static_cast<Mode>(*mode);
      return {};
    }
    case 3: {
      const Result<bool> async = parse_boolean(value);
      TR_TRY(async.status());
      options.async = *async;
      return {};
    }
    case 4: {
      const Result<std::size_t> busy = parse_choice(value, {"wait", "drop", "replace"});
      TR_TRY(busy.status());
      options.busy = static_cast<Options::Busy>(*busy);
      return {};
    }
    case 5: {
      const Result<std::size_t> capture = parse_choice(value, {"copy", "copy_on_write"});
      TR_TRY(capture.status());
      options.capture = static_cast<Options::Capture>(*capture);
      return {};
    }
    case 6: {
      const Result<std::size_t> overwritten = parse_choice(value, {"refuse", "journal"});
      TR_TRY(overwritten.status());
      options.overwritten = static_cast<journal::Overwritten>(*overwritten);
      return {};
    }
    default: {
      const Result<Compression> compression = parse_compression(value);
      TR_TRY(compression.status());
      options.compression = *compression;
      return {};
    }
  }
}

}  // namespace

Result<Options> parse_options(const std::string& text) {
  const Result<tailrace::Options> given = tailrace::Options::parse(text);
  TR_TRY(given.status());
  Options options;
  for (const Option& option : given->entries()) {
    const Status status = set(options, option);
    if (!status.is_ok()) return status.in(cat(option.key, "=", option.value));
  }
  return options;
}

}  // namespace tailrace::checkpoint
