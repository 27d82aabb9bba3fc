// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// NCEP's abbreviations of parameters of WMO's code table 4.2, as wgrib2 prints them.

#include "formats/grib2/listings.hpp"

namespace tailrace::grib2 {

namespace {

/// The names of one category, from parameter `first` on. "": this table does not know the name.
struct Names {
  int discipline;
  int category;
  int first;
  std::vector<std::string_view> names;
};

const std::vector<Names> all_names{
    // Temperature
    {0,
     0,
     0,
     {"TMP", "VTMP", "POT", "EPOT", "TMAX", "TMIN", "DPT", "DEPR", "LAPR", "TMPA", "LHTFL", "SHTFL", "HEATX",
      "WCF", "MINDPD", "VPTMP", "SNOHF", "SKINT"}},
    // Moisture
    {0, 1, 0, {"SPFH",    "RH",    "MIXR",   "PWAT",   "VAPP",   "SATD",    "EVP",   "PRATE",  "APCP",
               "NCPCP",   "ACPCP", "SNOD",   "SRWEQ",  "WEASD",  "SNOC",    "SNOL",  "SNOM",   "SNOAG",
               "ABSH",    "PTYPE", "ILIQW",  "TCOND",  "CLMR",   "ICMR",    "RWMR",  "SNMR",   "MCONV",
               "MAXRH",   "MAXAH", "ASNOW",  "PWCAT",  "HAIL",   "GRLE",    "CRAIN", "CFRZR",  "CICEP",
               "CSNOW",   "CPRAT", "MDIVER", "CPOFP",  "PEVAP",  "PEVPR",   "SNOWC", "FRAIN",  "RIME",
               "TCOLR",   "TCOLS", "LSWP",   "CWP",    "TWATP",  "TSNOWP",  "TCWAT", "TPRATE", "TSRWE",
               "LSPRATE", "CSRWE", "LSSRWE", "TSRATE", "CSRATE", "LSSRATE", "SDWE",  "SDEN",   "SEVAP"}},
    {0, 1, 64, {"TCIWV", "RPRATE", "SPRATE", "FPRATE", "IPRATE", "TCOLW", "TCOLI", "HAILMXR"}},
    // Momentum
    {0, 2, 0, {"WDIR",  "WIND", "UGRD", "VGRD",  "STRM",  "VPOT",    "MNTSF", "SGCVV",
               "VVEL",  "DZDT", "ABSV", "ABSD",  "RELV",  "RELD",    "PVORT", "VUCSH",
               "VVCSH", "UFLX", "VFLX", "WMIXE", "BLYDP", "MAXGUST", "GUST",  "UGUST",
               "VGUST", "VWSH", "MFLX", "USTM",  "VSTM",  "CD",      "FRICV"}},
    // Mass
    {0, 3, 0, {"PRES",   "PRMSL", "PTEND", "ICAHT", "GP",   "HGT",   "DIST",
               "HSTDV",  "PRESA", "GPA",   "DEN",   "ALTS", "THICK", "PRESALT",
               "DENALT", "5WAVH", "U-GWD", "V-GWD", "HPBL", "5WAVA", "SDSGSO"}},
    // Radiation
    {0,
     4,
     0,
     {"NSWRS", "NSWRT", "SWAVR", "GRAD", "BRTMP", "LWRAD", "SWRAD", "DSWRF", "USWRF", "NSWRF", "PHOTAR",
      "NSWRFCS", "DWUVR"}},
    {0, 5, 0, {"NLWRS", "NLWRT", "LWAVR", "DLWRF", "ULWRF", "NLWRF", "NLWRCS"}},
    // Cloud
    {0,
     6,
     0,
     {"CICE", "TCDC", "CDCON", "LCDC", "MCDC", "HCDC", "CWAT", "CDCA", "CDCT", "TMAXT", "THUNC", "CDCB",
      "CDCTOP", "CEIL", "CDLYR"}},
    {0, 6, 22, {"CDCC"}},
    // Stability
    {0,
     7,
     0,
     {"PLI", "BLI", "KX", "KOX", "TOTALX", "SX", "CAPE", "CIN", "HLCY", "EHLX", "LFTX", "4LFTX", "RI"}},
    {0, 14, 0, {"TOZNE", "O3MR"}},
    {0, 16, 4, {"REFD", "REFC"}},
    {0, 19, 0, {"VIS", "ALBDO", "TSTM", "MIXHT"}},
    {0, 19, 11, {"TKE"}},
    // Hydrology
    {1, 0, 5, {"BGRUN", "SSRUN"}},
    // Land
    {2, 0, 0, {"LAND",  "SFCR",  "TSOIL", "SOILM", "VEG",   "WATR",  "EVAPT", "MTERH",
               "LANDU", "SOILW", "GFLUX", "MSTAV", "SFEXC", "CNWAT", "BMIXL", "CCOND",
               "RSMIN", "WILT",  "RCS",   "RCT",   "RCQ",   "RCSOL"}},
    {2, 3, 0, {"SOTYP", "UPLST", "UPLSM", "LOWLSM", "BOTLST", "SOILL"}},
    // Ocean: waves, currents, ice, surface
    {10,
     0,
     0,
     {"WVSP1", "WVSP2", "WVSP3", "HTSGW", "WVDIR", "WVHGT", "WVPER", "SWDIR", "SWELL", "SWPER", "DIRPW",
      "PERPW", "DIRSW", "PERSW"}},
    {10, 1, 0, {"DIRC", "SPC", "UOGRD", "VOGRD"}},
    {10, 2, 0, {"ICEC", "ICETK", "DICED", "SICED", "UICE", "VICE", "ICEG", "ICED", "ICETMP"}},
    {10, 3, 0, {"WTMP", "DSLM"}},
    {10, 4, 0, {"MTHD", "MTHA", "TTHDP", "SALTY", "OVHD", "OVSD", "OVMD"}},
};

}  // namespace

std::string_view wgrib2_name(int discipline, int category, int number) {
  for (const Names& each : all_names) {
    if (each.discipline != discipline || each.category != category || number < each.first) continue;
    const auto place = static_cast<std::size_t>(number - each.first);
    if (place < each.names.size()) return each.names[place];
  }
  return {};
}

}  // namespace tailrace::grib2
