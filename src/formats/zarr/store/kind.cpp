// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/codec.hpp"

#ifdef TAILRACE_HAVE_ZARR
#include "formats/zarr/store/store_file.hpp"
#endif

namespace tailrace::zarr {

constinit const codec::StoreKind store_kind{.begun_with = begun_with,
#ifdef TAILRACE_HAVE_ZARR
                                            .opener = StoreFile::opener
#endif
};

}  // namespace tailrace::zarr
