# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The metadata of fields that a data file holds: names, units, grids."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Coordinate:
    """A variable that is the same in all steps. Its values are read only when they are asked for."""

    dims: tuple[str, ...]
    values: Callable[[], np.ndarray]
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """One field: dimensions of a record in the file, attributes, the value that means "no value", and coordinates by
    name.

    `level` is the name of the coordinate of its levels, if the file has one."""

    dims: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    fill: float | int | None = None
    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    level: str | None = None


def plain_dims(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Returns names for dimensions of which nothing is known, as in the files that Tailrace writes."""
    return {1: ("cell",), 2: ("y", "x"), 3: ("z", "y", "x")}.get(len(shape), tuple(f"dim{i}" for i in range(len(shape))))
