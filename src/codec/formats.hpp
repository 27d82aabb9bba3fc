// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "codec/codec.hpp"

namespace tailrace::codec {

/// The functions behind the registry of formats (codec.cpp): one for each format of this build.
Result<std::unique_ptr<Codec>> make_raw(const StreamDefinition& stream);
Result<std::unique_ptr<Codec>> make_grib2(const StreamDefinition& stream);

/// Checks what every format needs of a field: a name, a shape, and at most one way to say its precision.
Status check_field(const FieldDefinition& field);

}  // namespace tailrace::codec
