// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "codec/codec.hpp"

namespace tailrace::codec {

/// What the registry of formats (codec.cpp) is made of: one function for each format of this build.
Result<std::unique_ptr<Codec>> make_raw(const StreamDefinition& stream);
Result<std::unique_ptr<Codec>> make_grib2(const StreamDefinition& stream);

/// What holds for a field in every format: a name, a shape, one way at most to say its precision.
Status check_field(const FieldDefinition& field);

}  // namespace tailrace::codec
