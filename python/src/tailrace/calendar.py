# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Times in the calendars of streams, leads, and durations."""
from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Union

import numpy as np

from .errors import SettingsError
from .tables import CALENDAR_NUMBERS, CALENDARS

_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
#: The nanoseconds of the units in durations and in names of files.
NANOSECONDS = {"d": 86400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
# For calendars with leap years: the years after which the leap days repeat, the days of such a cycle, and the days from
# March 1 of year 0 to 1970-01-01. In the other calendars all years have the same length.
_CYCLES = {0: (400, 146097, 719468), 3: (4, 1461, 719483)}
_YEAR_DAYS = {1: 360, 2: 365, 4: 366}
MOST_YEARS = 10**9
MOST_SECONDS = MOST_YEARS * 366 * 86400

Duration = Union[int, float, str, datetime.timedelta, np.timedelta64]


def calendar_number(name: str) -> int:
    """Returns the number of a calendar with this name in CF."""
    if name not in CALENDAR_NUMBERS:
        raise SettingsError(f'calendar "{name}" does not exist; there are {", ".join(CALENDARS)}')
    return CALENDAR_NUMBERS[name]


def _is_leap(year: int, calendar: int) -> bool:
    if calendar in (0, 3):
        return year % 4 == 0 and (calendar == 3 or year % 100 != 0 or year % 400 == 0)
    return calendar == 4


def _days_in_month(year: int, month: int, calendar: int) -> int:
    if calendar == 1:
        return 30
    return _MONTH_DAYS[month - 1] + (1 if month == 2 and _is_leap(year, calendar) else 0)


@dataclass(frozen=True, order=True)
class Moment:
    """A time in any of the calendars and any year. Formats like a datetime, with %Y %y %m %d %H %M %S %j. `second` is
    whole, and `nanosecond` are the nanoseconds behind it."""

    year: int
    month: int = 1
    day: int = 1
    hour: int = 0
    minute: int = 0
    second: int = 0
    calendar: int = 0
    nanosecond: int = 0

    @property
    def day_of_year(self) -> int:
        first = Moment(self.year, 1, 1, calendar=self.calendar).seconds
        return (Moment(self.year, self.month, self.day, calendar=self.calendar).seconds - first) // 86400 + 1

    @property
    def is_valid(self) -> bool:
        return (abs(self.year) <= MOST_YEARS and 1 <= self.month <= 12 and 1 <= self.day <= _days_in_month(self.year, self.month, self.calendar)
                and 0 <= self.hour < 24 and 0 <= self.minute < 60 and 0 <= self.second < 60 and 0 <= self.nanosecond < 10**9)

    @property
    def seconds(self) -> int:
        """Whole seconds since 1970-01-01T00:00 of the calendar."""
        if self.calendar in _CYCLES:
            cycle, length, epoch = _CYCLES[self.calendar]
            # Years begin in March here, so that the leap day is the last of its year (H. Hinnant, "chrono-compatible
            # low-level date algorithms").
            year = self.year - (1 if self.month <= 2 else 0)
            era, of_era = divmod(year, cycle)
            of_year = (153 * (self.month - 3 if self.month > 2 else self.month + 9) + 2) // 5 + self.day - 1
            days = era * length + of_era * 365 + of_era // 4 - of_era // 100 + of_year - epoch
        else:
            days = (self.year - 1970) * _YEAR_DAYS[self.calendar] + self.day - 1
            days += sum(_days_in_month(self.year, month, self.calendar) for month in range(1, self.month))
        return ((days * 24 + self.hour) * 60 + self.minute) * 60 + self.second

    @staticmethod
    def of(seconds: int, calendar: int, nanosecond: int = 0) -> Moment:
        """Returns the time `seconds` and `nanosecond` after 1970-01-01T00:00 of the calendar."""
        days, rest = divmod(seconds, 86400)
        clock = (rest // 3600, rest // 60 % 60, rest % 60)
        if calendar in _CYCLES:
            cycle, length, epoch = _CYCLES[calendar]
            days += epoch
            era, of_era = divmod(days, length)
            year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
            of_year = of_era - (365 * year + year // 4 - year // 100)
            shifted = (5 * of_year + 2) // 153
            month = shifted + 3 if shifted < 10 else shifted - 9
            return Moment(year + era * cycle + (1 if month <= 2 else 0), month, of_year - (153 * shifted + 2) // 5 + 1, *clock, calendar, nanosecond)
        years, rest = divmod(days, _YEAR_DAYS[calendar])
        month = 1
        while rest >= _days_in_month(1970 + years, month, calendar):
            rest -= _days_in_month(1970 + years, month, calendar)
            month += 1
        return Moment(1970 + years, month, rest + 1, *clock, calendar, nanosecond)

    def letter(self, letter: str) -> str:
        """Returns the text of one letter of a time format, such as "2026" for Y."""
        value, width = {"Y": (self.year, 4), "y": (self.year % 100, 2), "m": (self.month, 2), "d": (self.day, 2), "H": (self.hour, 2),
                        "M": (self.minute, 2), "S": (self.second, 2), "j": (self.day_of_year, 3)}[letter]
        return f"-{-value:0{width}d}" if value < 0 else f"{value:0{width}d}"

    def strftime(self, form: str) -> str:
        return re.sub("%(.)", lambda each: "%" if each[1] == "%" else self.letter(each[1]) if each[1] in "YymdHMSj" else each[0], form)

    def __format__(self, form: str) -> str:
        return self.strftime(form) if form else str(self)

    def __str__(self) -> str:
        parts = f".{self.nanosecond:09d}".rstrip("0") if self.nanosecond else ""
        return self.strftime(f"%Y-%m-%dT%H:%M:%S{parts}Z")


def public(moment: Moment) -> datetime.datetime | Moment:
    """Returns a datetime in UTC if Python can represent the time, otherwise the Moment itself."""
    if moment.calendar != 0 or not 1 <= moment.year <= 9999 or moment.nanosecond % 1000:
        return moment
    return datetime.datetime(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.nanosecond // 1000,
                             tzinfo=datetime.timezone.utc)


_TIME = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?\s*[Zz]?")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:[Tt ]?(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?\s*[Zz]?")


def parse_time(text: str | datetime.datetime | datetime.date | Moment, calendar: int = 0) -> Moment:
    """Returns a time given as "2026-03-01T00:00Z", "2026-03-01 06" or "20260301T06", or as a datetime (UTC unless it
    has a zone)."""
    if isinstance(text, Moment):
        return text
    if isinstance(text, datetime.datetime):
        when = text.astimezone(datetime.timezone.utc) if text.tzinfo else text
        moment = Moment(when.year, when.month, when.day, when.hour, when.minute, when.second, calendar)
    elif isinstance(text, datetime.date):
        moment = Moment(text.year, text.month, text.day, calendar=calendar)
    else:
        found = _TIME.fullmatch(text.strip()) or _COMPACT.fullmatch(text.strip())
        if not found:
            raise SettingsError(f'"{text}" is no time; give one as 2026-03-01T00:00Z, 2026-03-01 06 or 20260301T06')
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
        moment = Moment(year, month, day, hour, minute, second, calendar)
    if not moment.is_valid:
        raise SettingsError(f'"{text}" does not exist in the calendar {CALENDARS[calendar]}')
    return moment


class Lead(datetime.timedelta):
    """The time from the base time to a step: a timedelta that prints as 45h, 1h30m, 0h or 667ms."""

    @staticmethod
    def of(seconds: int) -> Lead:
        return Lead(seconds=seconds)

    def __str__(self) -> str:
        return nanoseconds_text(self // datetime.timedelta(microseconds=1) * 1000)

    def __repr__(self) -> str:
        return f"Lead({self})"


def nanoseconds_text(nanoseconds: int) -> str:
    """Returns a duration as 45h, 1h30m, 90s or 1s334ms. Hours are not turned into days, as in file names."""
    if nanoseconds == 0:
        return "0h"
    parts, rest = [], abs(nanoseconds)
    for unit in ("h", "m", "s", "ms", "us", "ns"):
        number, rest = divmod(rest, NANOSECONDS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return ("-" if nanoseconds < 0 else "") + "".join(parts)


def duration_text(seconds: int) -> str:
    """Returns seconds as 45h, 1h30m or 90s."""
    return nanoseconds_text(seconds * 10**9)


def parse_duration(given: Duration) -> float:
    """Returns the seconds of "20min", "6h", "1h30m", "90s", "2d", "250ms", "00:15", a timedelta, or a number of
    seconds."""
    if isinstance(given, (int, float)):
        return float(given)
    return float(parse_nanoseconds(given) / 10**9)


def parse_nanoseconds(given: Duration) -> Fraction:
    """Returns the nanoseconds of a duration as above."""
    if isinstance(given, np.timedelta64):
        return Fraction(int(given.astype("timedelta64[ns]").astype(np.int64)))
    if isinstance(given, datetime.timedelta):
        return Fraction(given // datetime.timedelta(microseconds=1) * 1000)
    if isinstance(given, (int, float)):
        return Fraction(given) * 10**9
    text = given.strip()
    if re.fullmatch(r"\d+:\d\d(:\d\d)?", text):
        hours, minutes, *seconds = map(int, text.split(":"))
        return Fraction(hours * 3600 + minutes * 60 + (seconds[0] if seconds else 0)) * 10**9
    if text == "0":
        return Fraction(0)
    if not re.fullmatch(r"(\d+(min|ms|us|ns|[dhms]))+", text):
        raise SettingsError(f'"{given}" is no duration; give one as 20min, 6h, 90s, 2d, 1h30m, 250ms or 00:15')
    return Fraction(sum(int(number) * NANOSECONDS[unit] for number, unit in re.findall(r"(\d+)(min|ms|us|ns|[dhms])", text)))
