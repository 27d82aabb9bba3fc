# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The times of a stream's steps: leads in a unit, or times of the model's own. The same as
src/ground/base/time_axis.hpp.

An index carries the time of a step as one int64, its lead. Leads are compared and stored as they are, and equal times
have equal leads. For times of the model, which are of type double, the lead is the code of a time."""
from __future__ import annotations

import datetime
import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .calendar import NANOSECONDS, Duration, Lead, Moment, nanoseconds_text, parse_nanoseconds, public
from .errors import FormatError, NotThereError, UnsupportedError

_SECOND = 10**9


class TimeUnit(NamedTuple):
    """A unit of fixed length, in nanoseconds."""

    symbol: str
    plural: str
    nanoseconds: int


TIME_UNITS = tuple(TimeUnit(symbol, plural, NANOSECONDS[symbol]) for symbol, plural in (
    ("ns", "nanoseconds"), ("us", "microseconds"), ("ms", "milliseconds"), ("s", "seconds"), ("min", "minutes"), ("h", "hours"), ("d", "days")))
_BY_LENGTH = {unit.nanoseconds: unit for unit in TIME_UNITS}
_INFINITY: int = struct.unpack("<q", struct.pack("<d", math.inf))[0]


def find_time_unit(name: str) -> TimeUnit | None:
    """Returns the unit with this symbol or name, or None."""
    return next((unit for unit in TIME_UNITS if name in (unit.symbol, unit.plural, unit.plural[:-1])), None)


@dataclass(frozen=True)
class TimeAxis:
    """The times of a stream. The default is that of leads in seconds, of which an index of version 1 tells nothing.

    `nanoseconds` is the length of a unit of leads, or of the model's times if their unit has one; `shown` is that of a
    unit of the variable of time, and `name` the variable's name. `model_units` are the units of the model's times,
    empty for leads."""

    is_model: bool = False
    has_base: bool = True
    nanoseconds: int = _SECOND
    shown: int = _SECOND
    name: str = "time"
    model_units: str = ""

    @staticmethod
    def of_parts(kind: int, has_base: bool, nanoseconds: int, shown: int, name: str, units: str, what: str) -> TimeAxis:
        """Returns the axis that a file describes. Raises FormatError, beginning with `what`, if the parts contradict
        one another."""
        is_told = bool(units) if kind == 1 else not units and has_base
        if kind not in (0, 1) or not is_told or nanoseconds not in _BY_LENGTH or shown not in _BY_LENGTH or not name:
            raise FormatError(f"{what}: the description of its axis of times contradicts itself: kind {kind}, units of {nanoseconds} and {shown} ns, "
                              f'name "{name[:80]}", units "{units[:80]}"')
        return TimeAxis(kind == 1, has_base, nanoseconds, shown, name, units)

    @property
    def is_default(self) -> bool:
        """True for leads in seconds, with a variable of time as it is without any option."""
        return self == TimeAxis()

    @property
    def unit(self) -> str:
        """The symbol of the unit of leads, or the units of the model's times."""
        return self.model_units if self.is_model else _BY_LENGTH[self.nanoseconds].symbol

    def units(self, base: Moment) -> str:
        """Returns units in which the leads, or the model's times, are written without a loss: "milliseconds since
        2026-03-01 00:00:00", or the model's units if times count from no date."""
        if not self.has_base:
            return self.model_units
        unit = find_time_unit(self.model_units) if self.is_model else _BY_LENGTH[self.nanoseconds]
        return f"{unit.plural if unit else self.model_units} since {base.strftime('%Y-%m-%d %H:%M:%S')}"

    # ---- leads and numbers -------------------------------------------------------------------------------------

    def number(self, lead: int) -> float:
        """Returns the value of the variable of time for a lead."""
        return time_of(lead) if self.is_model else lead * self.nanoseconds / self.shown

    def lead_of_number(self, number: float) -> int:
        """Returns the lead for which the variable of time has this value, which must be finite. It may be beyond all
        leads."""
        return code_of(number) if self.is_model else round(Fraction(number) * self.shown / self.nanoseconds)

    def holds(self, lead: int, most_seconds: int) -> bool:
        """Returns True if a step can be at this lead: it is at most so many seconds away from the base time, or a
        finite time of the model."""
        return abs(lead) < _INFINITY if self.is_model else abs(self.floor_seconds(lead)) <= most_seconds

    def count(self, lead: int, nanoseconds: int) -> int | None:
        """Returns how many units of so many nanoseconds a lead is, None if it is no whole number of them. Only for
        axes of leads."""
        number, rest = divmod(lead * self.nanoseconds, nanoseconds)
        return None if rest else number

    def lead_of(self, count: int, nanoseconds: int) -> int | None:
        """Returns the lead that is `count` units of so many nanoseconds, None if there is no such lead. Only for axes
        of leads."""
        lead, rest = divmod(count * nanoseconds, self.nanoseconds)
        return None if rest or not -2**63 <= lead < 2**63 else lead

    def lead_of_length(self, given: Duration) -> int | None:
        """Returns the lead of a duration: the nearest one for a number of seconds or a timedelta, and None if a text
        is no whole number of the axis's units. Only for axes of leads."""
        nanoseconds = parse_nanoseconds(given)
        return self.lead_of(int(nanoseconds), 1) if isinstance(given, str) else round(nanoseconds / self.nanoseconds)

    def floor_seconds(self, lead: int) -> int:
        """Returns the last whole second up to a lead, counted from the base time, as names of files have it. Only for
        axes with a base time."""
        if not self.is_model:
            return lead * self.nanoseconds // _SECOND
        return math.floor(min(max(time_of(lead) * self.nanoseconds / _SECOND, -9e18), 9e18))

    def since_base(self, lead: int) -> int:
        """Returns the nanoseconds from the base time to a lead; times of the model are rounded. Only for axes with a
        base time."""
        return round(Fraction(time_of(lead)) * self.nanoseconds) if self.is_model else lead * self.nanoseconds

    def lead_at(self, seconds: int) -> int | None:
        """Returns the lead that is so many seconds after the base time, None if there is none. Only for axes with a
        base time."""
        return code_of(seconds * (_SECOND / self.nanoseconds)) if self.is_model else self.lead_of(seconds, _SECOND)

    # ---- for people --------------------------------------------------------------------------------------------

    def text(self, lead: int) -> str:
        """Returns "21600 s", "250 ms" or "0.667 s"."""
        if not self.is_model:
            return f"{lead} {self.unit}"
        return number_text(time_of(lead)) if self.model_units == "1" else f"{number_text(time_of(lead))} {self.model_units}"

    def at(self, lead: int) -> str:
        """Returns "lead 21600 s" or "time 0.667 s"."""
        return f"{'time' if self.is_model else 'lead'} {self.text(lead)}"

    def short(self, lead: int) -> str:
        """Returns "45h", "1s334ms" or "0.667 s"."""
        return self.text(lead) if self.is_model else nanoseconds_text(lead * self.nanoseconds)

    # ---- as Python has times -----------------------------------------------------------------------------------

    def duration(self, lead: int, what: str) -> Lead | np.timedelta64:
        """Returns a lead as a timedelta, or, if it counts nanoseconds, which a timedelta does not hold, as numpy's.
        Raises NotThereError for times of the model, and UnsupportedError for leads that are too long for a timedelta."""
        if self.is_model:
            raise NotThereError(f"{what}: its steps are at times of the model's own (time=model) and have no lead: step.time has the time")
        if self.nanoseconds == 1:
            return np.timedelta64(lead, "ns")
        try:
            return Lead(microseconds=lead * self.nanoseconds // 1000)
        except OverflowError as error:
            raise UnsupportedError(f"{what}: a lead of {self.text(lead)} is longer than a timedelta (999,999,999 days): step.time has it as a number") from error

    def moment(self, lead: int, base: Moment, what: str) -> datetime.datetime | Moment:
        """Returns the time at a lead: a datetime, or, if that does not hold the year, the calendar or the nanoseconds,
        a Moment. Times of the model are rounded to microseconds. Raises NotThereError for times without a date."""
        self.check_base(what)
        since = self.since_base(lead)
        if self.is_model:
            since = round(Fraction(since, 1000)) * 1000
        seconds, nanosecond = divmod(base.seconds * _SECOND + since, _SECOND)
        moment = Moment.of(seconds, base.calendar, nanosecond)
        return moment if self.nanoseconds == 1 else public(moment)

    def check_base(self, what: str) -> None:
        """Raises NotThereError if times are counted from no date."""
        if not self.has_base:
            raise NotThereError(f"{what}: its times count from no date (time=model without base=): step.time has the time")


def code_of(time: float) -> int:
    """Returns the code of a time of the model: codes are ordered as their times (IEEE 754, section 3.4), and the code
    of 0 is 0."""
    bits = int(struct.unpack("<q", struct.pack("<d", abs(time)))[0])
    return -bits if time < 0 else bits


def time_of(lead: int) -> float:
    """Returns the time of the model that has this code."""
    time = float(struct.unpack("<d", struct.pack("<q", abs(lead)))[0])
    return -time if lead < 0 else time


def number_text(value: float) -> str:
    """Returns the shortest digits that tell a number, as std::to_chars gives them: the shorter of 1e+05 and 100000, and
    of two equally long ones that without an exponent."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if size == 0 or not math.isfinite(size):
        return sign + f"{size:g}"
    digits, _, power = f"{size!r}".partition("e")
    whole, _, parts = digits.partition(".")
    mantissa = (whole + parts).lstrip("0")
    exponent = int(power or 0) - len(parts)
    exponent += len(mantissa) - len(mantissa.rstrip("0"))
    mantissa = mantissa.rstrip("0")
    length = len(mantissa)
    if -(length + (2 if length == 1 else 3)) <= exponent <= (4 if length == 1 else 5):
        if exponent >= 0:
            return f"{sign}{size:.0f}"
        padded = mantissa.rjust(1 - exponent, "0")
        return f"{sign}{padded[:exponent]}.{padded[exponent:]}"
    point = "." + mantissa[1:] if length > 1 else ""
    return f"{sign}{mantissa[0]}{point}e{exponent + length - 1:+03d}"
