# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Names and units of the CF conventions, the same as in the files that Tailrace writes."""
from __future__ import annotations

import re
from typing import NamedTuple

from .tables import LEVELS


class LevelType(NamedTuple):
    """The coordinate of a type of level."""

    dimension: str
    standard_name: str
    units: str
    positive: str


LEVEL_TYPES = {name: LevelType(*row) for name, row in LEVELS.items()}


def cf_units(units: str) -> str:
    """Returns ecCodes' units ("m s**-1", "(0 - 1)") as CF writes them ("m s-1", "1")."""
    if units in ("(0 - 1)", "Proportion", "Numeric", "dimensionless", "Dimensionless", "~", ""):
        return "1"
    return re.sub(r"\*\*\s*", "", units)


def level_attributes(level_type: str) -> dict[str, str]:
    """Returns the attributes of the coordinate of a type of level."""
    known = LEVEL_TYPES.get(level_type)
    # The standard name of hybrid levels needs formula terms beside it (CF, 4.3.3), which nobody has read here.
    has_name = known is not None and known.standard_name != "" and level_type != "hybrid"
    attributes = {"standard_name": known.standard_name} if known and has_name else {}
    attributes.update(long_name=level_type, units=known.units if known else "1", axis="Z")
    if known:
        attributes["positive"] = known.positive
    return attributes
