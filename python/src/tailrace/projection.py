# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Conformal maps of the earth: the place of a point on Lambert's cone, or on a plane at a pole, in metres.

The equations are those of J. P. Snyder, Map projections: a working manual (USGS, 1987), as in
src/formats/cf/projection.cpp."""
from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Earth:
    """A sphere, or a spheroid with two axes, in metres."""

    major: float
    minor: float

    @property
    def eccentricity(self) -> float:
        return math.sqrt(max(0.0, 1 - (self.minor / self.major) ** 2))

    def m(self, latitude: float) -> float:
        """Returns m of equation 14-15. Latitudes are in radians."""
        return math.cos(latitude) / math.sqrt(1 - (self.eccentricity * math.sin(latitude)) ** 2)

    def t(self, latitude: float) -> float:
        """Returns t of equation 15-9."""
        e = self.eccentricity
        part = e * math.sin(latitude)
        return math.tan(math.pi / 4 - latitude / 2) / math.pow((1 - part) / (1 + part), e / 2)


def lambert(earth: Earth, parallels: tuple[float, float], origin: float, central: float, latitude: float, longitude: float) -> tuple[float, float]:
    """Returns x and y of a point in metres: equations 15-1 to 15-10. All angles are in degrees."""
    one, two = map(math.radians, parallels)
    if abs(parallels[0] - parallels[1]) < 1e-9:
        n = math.sin(one)
    else:
        n = (math.log(earth.m(one)) - math.log(earth.m(two))) / (math.log(earth.t(one)) - math.log(earth.t(two)))
    scale = earth.major * earth.m(one) / (n * math.pow(earth.t(one), n))
    rho = scale * math.pow(earth.t(math.radians(latitude)), n)
    theta = n * math.radians(math.remainder(longitude - central, 360))
    return rho * math.sin(theta), scale * math.pow(earth.t(math.radians(origin)), n) - rho * math.cos(theta)


def polar(earth: Earth, parallel: float, south: bool, central: float, latitude: float, longitude: float) -> tuple[float, float]:
    """Returns x and y of a point on the plane at a pole, in metres: equations 21-30 to 21-34. All angles are in
    degrees."""
    sign, true, e = -1 if south else 1, math.radians(abs(parallel)), earth.eccentricity
    if abs(parallel) < 90:
        scale = earth.major * earth.m(true) / earth.t(true)
    else:
        scale = 2 * earth.major / math.sqrt(math.pow(1 + e, 1 + e) * math.pow(1 - e, 1 - e))
    rho = scale * earth.t(sign * math.radians(latitude))
    east = math.radians(math.remainder(longitude - central, 360))
    return rho * math.sin(east), -sign * rho * math.cos(east)
