// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/codec/listing.hpp"
#include "formats/codec/options.hpp"
#include "tailrace/encoders.h"

namespace tailrace::formats {

/// Functions of a format whose files can be read only once they are finished. Each `head` is the head of a
/// file (codec::Codec::head). A build that lacks the format has the first two alone.
struct Finishing {
  /// Returns what a part of the head says until the file is finished: Ending::head replaces it.
  codec::Patch (*unfinished)() = nullptr;
  /// Returns true if a file of `size` bytes has an ending behind `data_end`, whoever made it.
  Result<bool> (*is_finished)(const codec::ReadBytes& read, Bytes data_end, Bytes size) = nullptr;
  /// Makes a codec of the definitions in the head, which can make the ending of the file.
  Result<std::unique_ptr<codec::Codec>> (*reopen)(std::span<const std::byte> head) = nullptr;
};

/// A format of streams, or one that users ask for and that this version lacks.
struct Format {
  std::string_view name;  // as format= takes it
  Result<std::unique_ptr<codec::Codec>> (*make)(const codec::StreamDefinition&) = nullptr;
  std::string_view why;                     // the reason why `make` is null
  std::vector<std::string_view> endings{};  // names of files that end so promise this format
  codec::FormatOptions options{};
  std::vector<std::string_view> asked_as{};  // the words for a format that this version lacks
  /// Returns what tells readers of a file that it holds so many steps: a big-endian number. Null if the size
  /// of the file tells.
  std::optional<codec::Patch> (*step_count)(std::int64_t steps) = nullptr;
  std::optional<Finishing> finishing{};
  /// Returns Code::state if records of a stream with the head `now` cannot follow those in a file with the
  /// head `own`. Null if files have no heads.
  Status (*check_goes_on)(std::span<const std::byte> own, std::span<const std::byte> now) = nullptr;
  bool is_store = false;  // what has the file's name is a directory of objects (stores::with_stores)
  std::vector<codec::Listing> listings{};  // the words of index=
  /// Returns Code::settings if no record of the stream can have one of these keys. Null if there are no keys,
  /// or if nobody knows them all.
  Status (*check_keys)(const codec::StreamDefinition& stream, std::span<const std::string> keys) = nullptr;
};

/// Returns one line for each format that the library has. The first is the default.
const std::vector<Format>& all();

/// Makes an encoder of the program's own a format. Local. Returns Code::argument if another format has the
/// name, and errors of encoders::add.
Status register_encoder(std::string_view name, const tr_encoder* functions, void* user);

/// Returns the format for a text after format=, one of all() or a registered one. Returns Code::settings with
/// the nearest name or with the formats that there are.
Result<const Format*> find(std::string_view text);

/// Returns the format that the ending of a file's name promises, or the default. Code::settings if this
/// version lacks it.
Result<const Format*> promised_by(std::string_view file_name);

/// Returns the bytes that tell readers of a file of the format how many steps it holds, and their place, if
/// anything but its size does.
std::optional<codec::Patch> step_count(std::string_view format, std::int64_t steps);

/// Returns Format::check_goes_on of a format, or success if its files have no heads.
Status check_goes_on(std::string_view format, std::span<const std::byte> own, std::span<const std::byte> now);

/// Returns true if files of the format have heads that tell what they hold.
bool has_heads(std::string_view format);

/// Returns how files of the format are finished, or null if they need nothing.
const Finishing* finishing(std::string_view format);
/// Returns Code::unsupported, saying what helps, if files of the format have an ending that this build cannot
/// make: it must not take one away either.
Status check_can_finish(std::string_view format);

/// Returns the listings that files of any format may have beside them. A build that lacks a format has none
/// of it.
std::vector<codec::Listing> listings();
/// Returns the listing that a word of index= asks for, in a stream of the format. Code::settings if it has no
/// such.
Result<codec::Listing> listing(std::string_view format, std::string_view word);

/// Returns Format::check_keys of the stream's format, or success.
Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys);

/// Returns a codec of the stream's format. Returns Code::unsupported if this build lacks what it needs, and
/// errors of `find`.
Result<std::unique_ptr<codec::Codec>> make_codec(const codec::StreamDefinition& stream);

}  // namespace tailrace::formats
