// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/names.hpp"

#include <algorithm>
#include <array>

namespace tailrace::cf {

namespace {

// Sources: the CF Standard Name Table (cfconventions.org), code table 4.2 of GRIB2 (WMO) for the units of
// short names, and the CMIP6 data request for the names of ocean and sea-ice variables.
constexpr std::array quantities{
    Quantity{"10u", "eastward_wind", "m s-1"},
    Quantity{"10v", "northward_wind", "m s-1"},
    Quantity{"2d", "dew_point_temperature", "K"},
    Quantity{"2t", "air_temperature", "K"},
    Quantity{"al", "surface_albedo", "1"},
    Quantity{"ci", "sea_ice_area_fraction", "1"},
    Quantity{"cape", "atmosphere_convective_available_potential_energy", "J kg-1"},
    Quantity{"cc", "cloud_area_fraction_in_atmosphere_layer", "1"},
    Quantity{"ciwc", "mass_fraction_of_cloud_ice_in_air", "kg kg-1"},
    Quantity{"clwc", "mass_fraction_of_cloud_liquid_water_in_air", "kg kg-1"},
    Quantity{"cp", "convective_precipitation_amount", "kg m-2"},
    Quantity{"d", "divergence_of_wind", "s-1"},
    Quantity{"gh", "geopotential_height", "m"},
    Quantity{"hfss", "surface_upward_sensible_heat_flux", "W m-2"},
    Quantity{"hus", "specific_humidity", "1"},
    Quantity{"lsm", "land_binary_mask", "1"},
    Quantity{"lsp", "stratiform_precipitation_amount", "kg m-2"},
    Quantity{"mlotst", "ocean_mixed_layer_thickness_defined_by_sigma_t", "m"},
    Quantity{"msl", "air_pressure_at_mean_sea_level", "Pa"},
    Quantity{"o3", "mass_fraction_of_ozone_in_air", "kg kg-1"},
    Quantity{"pr", "precipitation_flux", "kg m-2 s-1"},
    Quantity{"prmsl", "air_pressure_at_mean_sea_level", "Pa"},
    Quantity{"ps", "surface_air_pressure", "Pa"},
    Quantity{"psl", "air_pressure_at_mean_sea_level", "Pa"},
    Quantity{"pv", "ertel_potential_vorticity", "K m2 kg-1 s-1"},
    Quantity{"q", "specific_humidity", "kg kg-1"},
    Quantity{"r", "relative_humidity", "%"},
    Quantity{"sd", "surface_snow_amount", "kg m-2"},
    Quantity{"siconc", "sea_ice_area_fraction", "%"},
    Quantity{"sithick", "sea_ice_thickness", "m"},
    Quantity{"skt", "surface_temperature", "K"},
    Quantity{"so", "sea_water_salinity", "0.001"},
    Quantity{"sos", "sea_surface_salinity", "0.001"},
    Quantity{"sp", "surface_air_pressure", "Pa"},
    Quantity{"sst", "sea_surface_temperature", "K"},
    Quantity{"t", "air_temperature", "K"},
    Quantity{"ta", "air_temperature", "K"},
    Quantity{"tas", "air_temperature", "K"},
    Quantity{"tcc", "cloud_area_fraction", "1"},
    Quantity{"tcwv", "atmosphere_mass_content_of_water_vapor", "kg m-2"},
    Quantity{"thetao", "sea_water_potential_temperature", "degC"},
    Quantity{"tos", "sea_surface_temperature", "degC"},
    Quantity{"tp", "precipitation_amount", "kg m-2"},
    Quantity{"u", "eastward_wind", "m s-1"},
    Quantity{"ua", "eastward_wind", "m s-1"},
    Quantity{"uas", "eastward_wind", "m s-1"},
    Quantity{"uo", "sea_water_x_velocity", "m s-1"},
    Quantity{"v", "northward_wind", "m s-1"},
    Quantity{"va", "northward_wind", "m s-1"},
    Quantity{"vas", "northward_wind", "m s-1"},
    Quantity{"w", "lagrangian_tendency_of_air_pressure", "Pa s-1"},
    Quantity{"wo", "upward_sea_water_velocity", "m s-1"},
    Quantity{"z", "geopotential", "m2 s-2"},
    Quantity{"zg", "geopotential_height", "m"},
    Quantity{"zos", "sea_surface_height_above_geoid", "m"},
};

constexpr std::array level_types{
    LevelType{"isobaricInhPa", "plev", "air_pressure", "hPa", "down"},
    LevelType{"isobaricInPa", "plev", "air_pressure", "Pa", "down"},
    LevelType{"heightAboveGround", "height", "height", "m", "up"},
    LevelType{"heightAboveSea", "altitude", "altitude", "m", "up"},
    LevelType{"hybrid", "lev", "atmosphere_hybrid_sigma_pressure_coordinate", "1", "down"},
    LevelType{"theta", "theta", "air_potential_temperature", "K", "up"},
    LevelType{"depthBelowLand", "depth_below_land", "depth", "m", "down"},
    LevelType{"depthBelowLandLayer", "depth_below_land", "depth", "m", "down"},
    LevelType{"depthBelowSea", "depth", "depth", "m", "down"},
    LevelType{"oceanModel", "olevel", "", "1", "down"},
};

template <typename Table, typename Name>
auto find_in(const Table& table, std::string_view wanted, Name name) -> decltype(table.data()) {
  const auto* const found = std::find_if(table.data(), table.data() + table.size(),
                                         [&](const auto& row) { return row.*name == wanted; });
  return found == table.data() + table.size() ? nullptr : found;
}

}  // namespace

const Quantity* find_quantity(std::string_view name) { return find_in(quantities, name, &Quantity::name); }
const LevelType* find_level_type(std::string_view type) {
  return find_in(level_types, type, &LevelType::type);
}

}  // namespace tailrace::cf
