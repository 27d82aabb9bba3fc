// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>

#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"
#include "formats/codec/store.hpp"

namespace tailrace::zarr {

/// Makes the codec of Zarr stores (version 3 of Zarr). Returns Code::argument if an attribute is not for
/// users to set, and Code::settings if compress= names no method.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);
/// Returns Code::state if steps of a stream with the head `now` cannot follow the steps in a store with the
/// head `own`, because coordinates, types, chunks, compression, fill values or rounding differ.
Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now);
/// Returns the bytes in a head that say how many steps a store has, and their place.
std::optional<codec::Patch> step_count(std::int64_t steps);

/// The name of the format, as users write it behind format=.
inline constexpr std::string_view format_name = "zarr";
/// The object whose presence shows that a stream has begun the store. It holds a copy of the metadata with
/// which the store was begun: other programs may change zarr.json of a finished store, but the order of the
/// objects in the row of bytes must not change with it.
inline constexpr std::string_view begun_with = ".tailrace.json";

/// Opens stores as files.
extern const codec::StoreKind store_kind;

inline codec::FormatOptions options() { return codec::options_of_chunked_variables(); }

}  // namespace tailrace::zarr
