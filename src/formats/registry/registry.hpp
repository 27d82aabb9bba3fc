// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/codec/listing.hpp"
#include "formats/codec/options.hpp"
#include "formats/codec/store.hpp"
#include "tailrace/encoders.h"

namespace tailrace::sources {
struct FrontEnd;
}  // namespace tailrace::sources

namespace tailrace::formats {

/// Functions of a format whose files can be read only once they are finished. Each `head` is the head of a
/// file (codec::Codec::head). A build without the format's library has only the first two functions.
struct Finishing {
  /// Returns the part of the head that marks the file as unfinished. Ending::head replaces this part later.
  codec::Patch (*unfinished)() = nullptr;
  /// Returns true if a file of `size` bytes has an ending behind `data_end`. Any program may have made it.
  Result<bool> (*is_finished)(const codec::ReadBytes& read, Bytes data_end, Bytes size) = nullptr;
  /// Makes a codec from the definitions in the head. The codec can make the ending of the file.
  Result<std::unique_ptr<codec::Codec>> (*reopen)(std::span<const std::byte> head) = nullptr;
};

/// A format of streams, or a name that users may ask for although no format has it here (NetCDF).
struct Format {
  std::string_view name;  // as users write it behind format=
  Result<std::unique_ptr<codec::Codec>> (*make)(const codec::StreamDefinition&) = nullptr;
  std::string_view why{};  // the reason why `make` is null, and this build cannot read the format either
  /// A text that says what the files are, in Markdown, with links as in docs/streams.md. about_formats()
  /// joins these texts for the option format=. It explains neighbours with equal texts together.
  std::string_view about{};
  std::vector<std::string_view> endings{};  // a file name with one of these endings promises this format
  codec::FormatOptions options{};
  std::vector<std::string_view> asked_as{};  // words for a format that does not exist here; otherwise empty
  /// Returns the bytes that tell readers how many steps a file holds (a big-endian number), and their place.
  /// Null if readers tell the number from the size of the file.
  std::optional<codec::Patch> (*step_count)(std::int64_t steps) = nullptr;
  std::optional<Finishing> finishing{};
  /// Returns Code::state if records of a stream with the head `now` cannot follow those in a file with the
  /// head `own`. Null if files have no heads.
  Status (*check_goes_on)(std::span<const std::byte> own, std::span<const std::byte> now) = nullptr;
  /// How a "file" is written that is a directory of objects. Its name has the format's only ending. Null if
  /// it is a file.
  const codec::StoreKind* store = nullptr;
  std::vector<codec::Listing> listings{};  // those that index= may ask for
  /// Returns Code::settings if no record of the stream can have one of these keys. Null if the format has no
  /// keys, or takes any key.
  Status (*check_keys)(const codec::StreamDefinition& stream, std::span<const std::string> keys) = nullptr;
  /// How files of any writer are recognised as this format and read: the front end in the format's folder.
  /// Null if streams alone have the format, or nobody.
  const sources::FrontEnd* reading = nullptr;
};

/// Returns all formats of the library, and the names that no format has here. The first format is the
/// default.
const std::vector<Format>& all();

/// Returns what the option format= takes, in Markdown: the name of each format with what its files are, then
/// what formats the endings of file names promise.
std::string about_formats();
std::string about_endings();

/// Makes the program's functions a format of this name. Local. Returns Code::argument if a format of the
/// library has the name, and errors of encoders::add.
Status register_encoder(std::string_view name, const tr_encoder* functions, void* user);

/// Returns the format that format=TEXT asks for: one of all(), or a registered encoder. If there is none,
/// returns Code::settings; the error names the nearest format, or all formats.
Result<const Format*> find(std::string_view text);

/// Returns the format that the ending of a file's name promises, or the default if it promises none. Returns
/// Code::settings if the ending stands for a name that no format has here.
Result<const Format*> promised_by(std::string_view file_name);

/// Returns Format::step_count(steps) of a format, or nothing if readers tell the number of steps from the
/// size of the file.
std::optional<codec::Patch> step_count(std::string_view format, std::int64_t steps);

/// Returns Format::check_goes_on of a format, or success if its files have no heads.
Status check_goes_on(std::string_view format, std::span<const std::byte> own, std::span<const std::byte> now);

/// Returns true if files of the format have heads with the stream's definitions or coordinates.
bool has_heads(std::string_view format);

/// Returns the functions that finish files of the format, or null if the files need no ending.
const Finishing* finishing(std::string_view format);
/// Returns Code::unsupported if files of the format need an ending that this build cannot make. Such a build
/// must not remove an ending either. The error says what to install.
Status check_can_finish(std::string_view format);

/// Returns all kinds of listings, of all formats that this build has.
std::vector<codec::Listing> listings();
/// Returns the kind of listing that a word of index= asks for in a stream of the format. Code::settings if
/// the format has no such kind, and Code::unsupported if this build lacks the format.
Result<codec::Listing> listing(std::string_view format, std::string_view word);

/// Returns Format::check_keys of the stream's format, or success.
Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys);

/// Returns a codec of the stream's format. Returns Code::unsupported if this build lacks a library that the
/// format needs, Code::argument if the base time does not exist in the calendar, and errors of `find`.
Result<std::unique_ptr<codec::Codec>> make_codec(const codec::StreamDefinition& stream);

}  // namespace tailrace::formats
