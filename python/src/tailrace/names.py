# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Names and units of the CF conventions, as src/formats/cf/names.cpp has them for the files that Tailrace writes."""
from __future__ import annotations

import re
from typing import NamedTuple


class LevelType(NamedTuple):
    """The coordinate of a type of level."""

    dimension: str
    standard_name: str
    units: str
    positive: str


# Sources: the CF Standard Name Table, and code table 4.2 of GRIB2 (WMO) for the units of short names.
QUANTITIES = {name: (standard, units) for name, standard, units in (line.split(None, 2) for line in """
10u eastward_wind m s-1
10v northward_wind m s-1
2d dew_point_temperature K
2t air_temperature K
al surface_albedo 1
ci sea_ice_area_fraction 1
cape atmosphere_convective_available_potential_energy J kg-1
cc cloud_area_fraction_in_atmosphere_layer 1
ciwc mass_fraction_of_cloud_ice_in_air kg kg-1
clwc mass_fraction_of_cloud_liquid_water_in_air kg kg-1
cp convective_precipitation_amount kg m-2
d divergence_of_wind s-1
gh geopotential_height m
hfss surface_upward_sensible_heat_flux W m-2
hus specific_humidity 1
lsm land_binary_mask 1
lsp stratiform_precipitation_amount kg m-2
mlotst ocean_mixed_layer_thickness_defined_by_sigma_t m
msl air_pressure_at_mean_sea_level Pa
o3 mass_fraction_of_ozone_in_air kg kg-1
pr precipitation_flux kg m-2 s-1
prmsl air_pressure_at_mean_sea_level Pa
ps surface_air_pressure Pa
psl air_pressure_at_mean_sea_level Pa
pv ertel_potential_vorticity K m2 kg-1 s-1
q specific_humidity kg kg-1
r relative_humidity %
sd surface_snow_amount kg m-2
siconc sea_ice_area_fraction %
sithick sea_ice_thickness m
skt surface_temperature K
so sea_water_salinity 0.001
sos sea_surface_salinity 0.001
sp surface_air_pressure Pa
sst sea_surface_temperature K
t air_temperature K
ta air_temperature K
tas air_temperature K
tcc cloud_area_fraction 1
tcwv atmosphere_mass_content_of_water_vapor kg m-2
thetao sea_water_potential_temperature degC
tos sea_surface_temperature degC
tp precipitation_amount kg m-2
u eastward_wind m s-1
ua eastward_wind m s-1
uas eastward_wind m s-1
uo sea_water_x_velocity m s-1
v northward_wind m s-1
va northward_wind m s-1
vas northward_wind m s-1
w lagrangian_tendency_of_air_pressure Pa s-1
wo upward_sea_water_velocity m s-1
z geopotential m2 s-2
zg geopotential_height m
zos sea_surface_height_above_geoid m
""".strip().splitlines())}

LEVEL_TYPES = {
    "isobaricInhPa": LevelType("plev", "air_pressure", "hPa", "down"),
    "isobaricInPa": LevelType("plev", "air_pressure", "Pa", "down"),
    "heightAboveGround": LevelType("height", "height", "m", "up"),
    "heightAboveSea": LevelType("altitude", "altitude", "m", "up"),
    "hybrid": LevelType("lev", "", "1", "down"),
    "theta": LevelType("theta", "air_potential_temperature", "K", "up"),
    "depthBelowLand": LevelType("depth_below_land", "depth", "m", "down"),
    "depthBelowLandLayer": LevelType("depth_below_land", "depth", "m", "down"),
    "depthBelowSea": LevelType("depth", "depth", "m", "down"),
    "oceanModel": LevelType("olevel", "", "1", "down"),
}


def cf_units(units: str) -> str:
    """Returns ecCodes' units ("m s**-1", "(0 - 1)") as CF writes them ("m s-1", "1")."""
    if units in ("(0 - 1)", "Proportion", "Numeric", "dimensionless", "Dimensionless", "~", ""):
        return "1"
    return re.sub(r"\*\*\s*", "", units)


def level_attributes(level_type: str) -> dict[str, str]:
    """Returns the attributes of the coordinate of a type of level."""
    known = LEVEL_TYPES.get(level_type)
    attributes = {"standard_name": known.standard_name} if known and known.standard_name else {}
    attributes.update(long_name=level_type, units=known.units if known else "1", axis="Z")
    if known:
        attributes["positive"] = known.positive
    return attributes
