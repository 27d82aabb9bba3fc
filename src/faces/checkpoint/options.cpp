// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/options.hpp"

#include "faces/checkpoint/context.hpp"
#include "ground/base/text.hpp"

namespace tailrace::checkpoint {

namespace {

/// Sets `field` to the value, or returns why there is none.
template <typename Field, typename Value>
Status put(const Result<Value>& value, Field& field) {
  TR_TRY(value.status());
  field = static_cast<Field>(*value);
  return {};
}

Status set(Options& options, const Option& option) {
  static const auto& keys = *new const std::vector<std::string_view>{
      "keep", "keep_every", "mode", "async", "busy", "capture", "overwritten", "compress"};
  const Result<std::size_t> key = parse_choice(option.key, keys);
  TR_TRY(key.status());
  const std::string& value = option.value;
  switch (*key) {
    case 0:
      return put(parse_integer(value, 2, 1000), options.keep);
    case 1:
      return put(parse_integer(value, 0, std::int64_t{1} << 40), options.keep_every);
    case 2:
      return put(parse_choice(value, {"parallel", "local"}), options.mode);
    case 3:
      return put(parse_boolean(value), options.async);
    case 4:
      return put(parse_choice(value, {"wait", "drop", "replace"}), options.busy);
    case 5:
      return put(parse_choice(value, {"copy", "copy_on_write"}), options.capture);
    case 6:
      return put(parse_choice(value, {"refuse", "journal"}), options.overwritten);
    default:
      return put(parse_compression(value), options.compression);
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
