// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/front_end.hpp"

#include <algorithm>
#include <array>

#include "formats/zarr/codec.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::zarr {

namespace {

bool fits(const sources::Opening& opening) {
  if (opening.index != nullptr && opening.index->header.format == format_name) return true;
  if (opening.file != nullptr) return false;
  const auto objects = storage::objects_at(opening.target, storage::OpenMode::read_regular)(opening.path);
  return std::ranges::any_of(std::array{"zarr.json", ".zmetadata", ".zgroup", ".zarray"},
                             [&](const char* key) {
                               const Result<bool> exists = objects->exists(key);
                               return !exists.is_ok() || *exists;
                             });
}

}  // namespace

constinit const sources::FrontEnd front_end{.name = "Zarr",
                                            .sign = sources::Sign::objects,
                                            .fits = fits,
#ifdef TAILRACE_HAVE_ZARR
                                            .scan = scan,
                                            .make = make_source
#endif
};

}  // namespace tailrace::zarr
