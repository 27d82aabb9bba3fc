// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <array>

#include "formats/sources/front_end.hpp"
#include "formats/sources/grib.hpp"
#include "formats/variables/classic.hpp"
#include "formats/variables/netcdf4.hpp"
#include "formats/variables/own_records.hpp"
#include "formats/variables/zarr.hpp"

namespace tailrace::sources {

namespace {

#ifdef TAILRACE_HAVE_GRIB
constexpr FrontEnd grib_front_end{"GRIB", "", fits_grib, scan_grib, make_grib, grib_maker};
#else
constexpr FrontEnd grib_front_end{
    "GRIB", "built without ecCodes; install libeccodes-dev and configure again with -DTAILRACE_GRIB=ON",
    fits_grib};
#endif
constexpr FrontEnd raw_front_end{"raw", "", variables::fits_raw, variables::scan_raw, variables::make_raw};
constexpr FrontEnd classic_front_end{"NetCDF (classic)", "", variables::fits_classic, variables::scan_classic,
                                     variables::make_classic};
#ifdef TAILRACE_HAVE_HDF5
constexpr FrontEnd netcdf4_front_end{"NetCDF-4", "", variables::fits_netcdf4, variables::scan_netcdf4,
                                     variables::make_netcdf4};
#else
constexpr FrontEnd netcdf4_front_end{
    "NetCDF-4",
    "built without HDF5; install libhdf5-dev and libdeflate-dev and configure again with -DTAILRACE_HDF5=ON",
    variables::fits_netcdf4};
#endif

#ifdef TAILRACE_HAVE_ZARR
constexpr FrontEnd zarr_front_end{"Zarr", "", variables::fits_zarr, variables::scan_zarr,
                                  variables::make_zarr};
#else
constexpr FrontEnd zarr_front_end{"Zarr",
                                  "built without JSON or libdeflate; install nlohmann-json3-dev and "
                                  "libdeflate-dev and configure again with -DTAILRACE_ZARR=ON",
                                  variables::fits_zarr};
#endif

// The first front end that fits reads the file, so the order matters: values of a raw file may begin like any
// other format, and "GRIB" may stand in names at the beginning of a NetCDF file.
constexpr std::array all_front_ends{raw_front_end, classic_front_end, netcdf4_front_end, grib_front_end,
                                    zarr_front_end};

}  // namespace

std::span<const FrontEnd> front_ends() { return all_front_ends; }

}  // namespace tailrace::sources
