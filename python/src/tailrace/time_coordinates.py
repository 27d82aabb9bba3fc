# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The coordinates of a Dataset that tell the times of its steps."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray

from .calendar import Moment
from .errors import UnsupportedError
from .index import IndexHeader
from .tables import CALENDARS

_SECOND = 10**9
_SYMBOLS = {1: "ns", 1000: "us", 10**6: "ms", _SECOND: "s"}
_MOST = 2**63 - 1  # numpy's times are 64-bit integers, of which the least means "no time"


class TimeCoordinates:
    """Lead, time, base time and member of the steps at `leads`.

    Leads have the dimension `lead`. Times of the model have the dimension and the name of the files' variable of
    time."""

    def __init__(self, header: IndexHeader, leads: Sequence[int], what: str) -> None:
        self.axis, self.base, self.member, self.leads, self.what = header.time, header.base, header.member, list(leads), what
        taken = ("base", "realization", "bnds") if self.axis.is_model else ("base", "realization", "bnds", "lead")
        #: The name of the coordinate of time.
        self.name = "time" if self.axis.name in taken else self.axis.name.replace("/", "_")
        self.dimension = self.name if self.axis.is_model else "lead"
        self._is_datetime = self.axis.has_base and self.base.calendar == 0 and abs(self.base.year) < 10**6
        self._unit = self._model_unit() if self.axis.is_model else min(self.axis.nanoseconds, _SECOND)

    def _model_unit(self) -> int:
        """Returns the unit of numpy's times in which all times of the model, rounded, have room. Times that are too far
        away for nanoseconds and microseconds stay numbers."""
        if self._is_datetime:
            for unit in (1, 1000):
                if all(self._fits(lead, unit) for lead in self.leads):
                    return unit
        self._is_datetime = False
        return 1000

    def _fits(self, lead: int, unit: int) -> bool:
        return abs(self._since_epoch(lead, unit)) <= _MOST

    def _since_epoch(self, lead: int, unit: int) -> int:
        return self.base.seconds * (_SECOND // unit) + self.axis.since_base(lead) // unit

    def variables(self) -> dict[str, xarray.Variable]:
        """Returns the coordinates by name."""
        out: dict[str, xarray.Variable] = {}
        if not self.axis.is_model:
            counted = self.axis.nanoseconds // self._unit
            out["lead"] = xarray.Variable(("lead",), np.array([lead * counted for lead in self.leads], f"timedelta64[{_SYMBOLS[self._unit]}]"), {
                "standard_name": "forecast_period", "long_name": "time since the base time", "axis": "T"})
        attrs = {"standard_name": "time"} if self.axis.has_base else {}
        values, told = self._moments(list(self.leads))
        out[self.name] = xarray.Variable((self.dimension,), values, {**attrs, "long_name": "time", **told, **({"axis": "T"} if self.axis.is_model else {})})
        if values.dtype.kind == "M":
            # xarray writes bounds with the units of their time.
            out[self.name].encoding = {"units": self.axis.units(self.base), "calendar": CALENDARS[0],
                                       "dtype": np.dtype("float64" if self.axis.is_model else "int64")}
        if self.axis.has_base:
            out["base"] = self._base()
        if self.member is not None:
            out["realization"] = xarray.Variable((), self.member, {"standard_name": "realization", "units": "1"})
        return out

    def _base(self) -> xarray.Variable:
        attrs = {"standard_name": "forecast_reference_time", "long_name": "base time"}
        if self.base.calendar == 0 and abs(self.base.year) < 10**6:
            return xarray.Variable((), np.datetime64(self.base.seconds, "s"), attrs)
        values, told = self._in_calendar([0], [0.0])
        return xarray.Variable((), values[0], {**attrs, **told})

    def moments(self, leads: Sequence[int | None]) -> np.ndarray:
        """Returns the times of these leads as the coordinate of time has them; no time (NaT or NaN) for None."""
        return self._moments(leads)[0]

    def _moments(self, leads: Sequence[int | None]) -> tuple[np.ndarray, dict[str, Any]]:
        """Returns times, and the attributes that tell what they count if they are numbers."""
        is_known = [lead is not None for lead in leads]
        known = [lead if lead is not None else 0 for lead in leads]
        if self._is_datetime:
            symbol = _SYMBOLS[self._unit]
            for lead in known:
                if not self._fits(lead, self._unit):
                    raise UnsupportedError(f"{self.what}: {self.axis.at(lead)} after {self.base} is beyond the times that numpy's datetime64[{symbol}] holds, "
                                           "and xarray needs one: read the steps one by one")
            values = np.array([self._since_epoch(lead, self._unit) for lead in known], np.int64).view(f"datetime64[{symbol}]")
            values[np.logical_not(is_known)] = np.datetime64("NaT")
            return values, {}
        numbers = [self.axis.number(lead) if self.axis.is_model else lead for lead in known]
        if not self.axis.has_base:
            return np.where(is_known, np.array(numbers, float), np.nan), {"units": self.axis.units(self.base)}
        values, told = self._in_calendar([self.axis.since_base(lead) for lead in known], numbers)
        if not all(is_known):
            values = values.astype(float) if told else values
            values[np.logical_not(is_known)] = np.nan
        return values, told

    def _in_calendar(self, since: list[int], numbers: Sequence[float]) -> tuple[np.ndarray, dict[str, Any]]:
        """Returns times in a calendar that numpy lacks, given in nanoseconds since the base time: as cftime's. If cftime
        is not installed, or lacks the nanoseconds or the years, as `numbers` with CF's units."""
        told = {"units": self.axis.units(self.base), "calendar": CALENDARS[self.base.calendar]}
        try:
            import cftime
        except ImportError:
            return np.array(numbers), told
        # Times of the model are rounded to microseconds.
        if self.axis.nanoseconds == 1 or (self.axis.is_model and self.base.calendar == 0):
            return np.array(numbers), told
        out = np.empty(len(since), object)
        for place, each in enumerate(since):
            seconds, microsecond = divmod(self.base.seconds * 10**6 + (each + 500) // 1000, 10**6)
            when = Moment.of(seconds, self.base.calendar)
            if abs(when.year) >= 10**9:
                return np.array(numbers), told
            out[place] = cftime.datetime(when.year, when.month, when.day, when.hour, when.minute, when.second, microsecond, calendar=told["calendar"])
        return out, {}
