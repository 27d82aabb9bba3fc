// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/compression.hpp"

#include <algorithm>
#include <array>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::compression {

namespace {

struct Row {
  Method method = Method::none;
  std::string_view word;
  int lowest = 0, highest = 0, usual = 0;  // levels
  double cost = 0;  // ns for a byte of smooth float32 with noise: measured for docs/formats/zarr.md
};

constexpr std::array<Row, 6> rows{{{Method::none, "none", 0, 0, 0, 0.2},
                                   {Method::deflate, "deflate", 1, 9, 1, 4},
                                   {Method::gzip, "gzip", 1, 9, 1, 8},
                                   {Method::zstd, "zstd", 1, 19, 1, 1.2},
                                   {Method::blosc_lz4, "blosc_lz4", 1, 9, 5, 0.4},
                                   {Method::blosc_zstd, "blosc_zstd", 1, 9, 1, 0.8}}};

const Row& row_of(Method method) { return *std::ranges::find(rows, method, &Row::method); }

Result<Compression> parse(std::string_view text, std::span<const Method> methods) {
  std::vector<std::string_view> words;
  for (const Method each : methods) words.push_back(row_of(each).word);
  const std::size_t colon = text.find(':');
  const Result<std::size_t> choice = parse_choice(text.substr(0, colon), words);
  TR_TRY(choice.status());
  const Row& row = row_of(methods[*choice]);
  Compression how{row.method, row.usual};
  if (colon == std::string_view::npos) return how;
  if (row.highest == 0)
    return Status(Code::settings, cat("\"", text, "\": ", row.word, " takes no level; leave it out"));
  const Result<std::int64_t> level = parse_integer(text.substr(colon + 1), row.lowest, row.highest);
  TR_TRY(level.status().in(cat("the level of ", row.word)));
  how.level = static_cast<int>(*level);
  return how;
}

}  // namespace

Result<Compression> asked_for(const codec::FieldDefinition& field, const codec::Keys& stream,
                              std::span<const Method> methods) {
  const std::string* text = codec::find_key(field.keys, "compress");
  if (text == nullptr) text = codec::find_key(stream, "compress");
  if (text == nullptr) return Compression{methods.front(), row_of(methods.front()).usual};
  Result<Compression> how = parse(*text, methods);
  TR_TRY(how.status().in("compress"));
  return how;
}

std::string text_of(const Compression& how) {
  const Row& row = row_of(how.method);
  return row.highest == 0 ? std::string(row.word) : cat(row.word, ":", how.level);
}

Status check_asked(const codec::Keys& stream, std::span<const Method> methods) {
  return asked_for({}, stream, methods).status();
}

Bytes blosc_block(const Compression& how) {
  return how.method == Method::blosc_zstd && how.level <= 3 ? Bytes{1} << 20 : 0;
}

double cost(Method method) { return row_of(method).cost; }

}  // namespace tailrace::compression
