// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grids/grids.hpp"

#ifdef TAILRACE_HAVE_GRIB
#include "formats/grib2/header.hpp"
#include "formats/grib2/sample.hpp"
#include "ground/layout/shape.hpp"
#endif

namespace tailrace::grids {

#ifdef TAILRACE_HAVE_GRIB

Result<codec::Keys> keys_of(const codec::Georeference& georeference) {
  return grib2::grid_keys(georeference);
}

/// Making the message fills in the keys that the georeference leaves out.
Result<codec::Keys> keys_of_message(const std::vector<Index>& shape,
                                    const codec::Georeference& georeference) {
  if (georeference.keys.empty()) return grib2::grid_keys(georeference);
  const Result<codec::Keys> named = grib2::named_grid(georeference.keys);
  TR_TRY(named.status());
  if (georeference.sample.empty() && grib2::is_healpix(*named)) {
    const Result<ByteVector> section = grib2::healpix_section(*named, layout::product(shape));
    TR_TRY(section.status());
    return grib2::keys_of_section(*section);
  }
  codec::FieldDefinition field;
  field.shape = shape;
  codec::Keys wanted;
  ByteVector message;
  {
    const auto lock = grib2::lock_definitions();
    const bool from_sample = !georeference.sample.empty();
    Result<grib2::Handle> handle =
        from_sample ? grib2::Handle::from_message(georeference.sample) : grib2::Handle::from_sample("GRIB2");
    TR_TRY(handle.status());
    TR_TRY(grib2::set_grid(*handle, field, georeference.keys, from_sample, wanted));
    const auto bytes = handle->message();
    message.assign(bytes.begin(), bytes.end());
  }
  return grib2::grid_keys({std::move(message), {}});
}

#else

Result<codec::Keys> keys_of(const codec::Georeference& georeference) { return georeference.keys; }

Result<codec::Keys> keys_of_message(const std::vector<Index>&, const codec::Georeference& georeference) {
  return georeference.keys;
}

#endif

}  // namespace tailrace::grids
