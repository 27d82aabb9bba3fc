# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""File names with places for times: "fc_{base:%Y%m%d%H}+{lead:03h}.grib2". The same as
src/faces/streams/definition/pattern.hpp."""
from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .calendar import MOST_SECONDS, NANOSECONDS, Moment
from .errors import SettingsError
from .tables import CALENDARS
from .time_axis import TimeAxis, code_of, number_text, time_of

_UNITS = ("d", "h", "m", "s", "ms", "us", "ns")
_LETTERS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "j": 3}
_FORMS = "{base:%Y%m%d%H} {valid:%Y%m%d%H} {lead:03h} {lead:05m} {lead:06s} {lead:09ms} {time:08.3f} {member:02}, and {{ }} for braces"


@dataclass(frozen=True)
class Part:
    """A literal text, or a place in braces."""

    kind: str  # literal, base, valid, lead, time or member
    text: str = ""  # literal text, or the time format
    unit: str = "s"  # of a lead
    width: int = 0  # least number of digits
    decimals: int = -1  # of a time; -1: as many as tell it


@dataclass(frozen=True)
class Context:
    """The values that determine a file's name, apart from its lead."""

    base: Moment = field(default_factory=lambda: Moment(1970))
    member: int | None = None
    time: TimeAxis = field(default_factory=TimeAxis)


class Pattern:
    """A parsed pattern. Parsing raises SettingsError, which names the position of a mistake."""

    def __init__(self, text: str) -> None:
        self.text = text
        if not text:
            raise SettingsError("the file pattern is empty; give a name such as fc+{lead:03h}.grib2")
        self.parts = tuple(_merged(_scan(text)))

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    @property
    def uses_time(self) -> bool:
        return any(part.kind in ("base", "valid") for part in self.parts)

    @property
    def uses_member(self) -> bool:
        return any(part.kind == "member" for part in self.parts)

    @property
    def depends_on_lead(self) -> bool:
        return any(_changes(part) for part in self.parts)

    @property
    def units(self) -> set[str]:
        """The units of leads in the pattern."""
        return {part.unit for part in self.parts if part.kind == "lead"}

    @property
    def names_model_times(self) -> bool:
        return any(part.kind == "time" for part in self.parts)

    def check(self, time: TimeAxis) -> None:
        """Raises SettingsError if the axis of times lacks what the pattern asks for."""
        for kind, lacks, why in (("base", not time.has_base, "the stream has no base="), ("valid", not time.has_base, "the stream has no base="),
                                 ("lead", time.is_model, "a stream with time=model has none: write {time:08.3f}"),
                                 ("time", not time.is_model, "a stream has it with time=model alone: write {lead:06s}")):
            if lacks and any(part.kind == kind for part in self.parts):
                raise SettingsError(f'file pattern "{self.text}" asks for {{{kind}}}, and {why}')

    def expand(self, lead: int, context: Context) -> str:
        """Returns the name of the file that holds this lead, which is counted as the context's axis of times says.
        Raises SettingsError if the pattern cannot name it exactly."""
        self.check(context.time)
        out = []
        for part in self.parts:
            if part.kind == "literal":
                out.append(part.text)
            elif part.kind == "base":
                out.append(context.base.strftime(part.text))
            elif part.kind == "valid":
                out.append(_after(context, lead).strftime(part.text))
            elif part.kind == "lead":
                out.append(self._lead(lead, part, context.time))
            elif part.kind == "time":
                out.append(_time_text(time_of(lead), part))
            else:
                out.append(_member(part, context, self.text))
        return "".join(out)

    def _lead(self, lead: int, part: Part, time: TimeAxis) -> str:
        if lead < 0:
            raise SettingsError(f'file pattern "{self.text}": a lead of {time.text(lead)} is below zero')
        number = time.count(lead, NANOSECONDS[part.unit])
        if number is None:
            raise SettingsError(f'file pattern "{self.text}": a lead of {time.text(lead)} is no whole number of {{lead:{part.unit}}}')
        return f"{number:0{part.width}d}" if part.width else str(number)

    def match(self, name: str, context: Context) -> int | None:
        """Returns the smallest lead that belongs to the file of this name: the smallest from 0 on, or
        the smallest at all if the file has only times before the base time. Returns None if the pattern does not
        give the name."""
        for lead in self._leads(0, name, {}, context):
            try:
                if context.time.holds(lead, MOST_SECONDS) and self.expand(lead, context) == name:
                    return lead
            except SettingsError:
                pass
        return None

    def lead_text(self, lead: int, time: TimeAxis) -> str | None:
        """Returns a lead as the pattern writes it, with its unit: 045h. Returns None if the pattern has no lead or
        cannot write this one."""
        for part in self.parts:
            number = time.count(lead, NANOSECONDS[part.unit]) if part.kind == "lead" and lead >= 0 and not time.is_model else None
            if number is not None:
                return f"{number:0{max(part.width, 1)}d}{part.unit}"
        return None

    def stream_lock(self, context: Context) -> str:
        """Returns the name of the lock that a stream holds as long as it is open (docs/formats/index.md, Writing)."""
        fixed, rest, changes = "", "", False
        for part in self.parts:
            text = part.text
            if part.kind == "base":
                text = context.base.strftime(part.text)
            elif part.kind == "member":
                text = _member(part, context, self.text)
            elif part.kind == "valid":
                text = f"{{valid:{part.text}}}"
            elif part.kind == "lead":
                text = f"{{lead:{f'0{part.width}' if part.width else ''}{part.unit}}}"
            elif part.kind == "time":
                text = "{time}" if part.decimals < 0 else f"{{time:{f'0{part.width}' if part.width else ''}.{part.decimals}f}}"
            changes = changes or part.kind in ("valid", "lead", "time")
            if changes:
                rest += text
            else:
                fixed += text
        directory, slash, name = fixed.rpartition("/")
        return f"{directory}{slash}{(name + rest).replace('/', '_')}.stream.lock"

    def find(self, context: Context) -> list[tuple[int, str]]:
        """Returns leads and paths of all data files that the pattern names, in the order of their leads. A file is
        listed if it or its index exists. A pattern without lead names one file, with lead 0."""
        if not self.depends_on_lead:
            return [(0, self.expand(0, context))]
        found: dict[str, int] = {}
        for path in self._candidates(context):
            for ending in ("", ".trx", ".idx"):
                name = path[:len(path) - len(ending)]
                if path.endswith(ending) and name not in found:
                    lead = self.match(name, context)
                    if lead is not None:
                        found[name] = lead
        return sorted((lead, name) for name, lead in found.items())

    def _candidates(self, context: Context) -> Iterator[str]:
        """Yields the paths in all directories that the pattern may name."""
        directories = [""]
        *upper, last = _components(self.parts, context, self.text)
        for literal, shape in upper:
            if literal is not None:
                directories = [each + literal + "/" for each in directories]
            else:
                directories = [each + name + "/" for each in directories for name in _listed(each) if shape.fullmatch(name)]
        literal, shape = last
        for each in directories:
            for name in _listed(each):
                if shape.match(name):
                    yield each + name

    def _leads(self, at: int, rest: str, found: dict[str, int], context: Context) -> Iterator[int]:
        """Yields the leads that `rest` may mean for the parts from `at` on. The caller checks each by expanding it."""
        if at == len(self.parts):
            if not rest:
                yield from _lead_of(found, context)
            return
        part = self.parts[at]
        if part.kind == "lead":
            digits = len(rest) - len(rest.lstrip("0123456789"))
            for width in range(max(1, part.width), min(digits, 18) + 1):
                lead = None if context.time.is_model else context.time.lead_of(int(rest[:width]), NANOSECONDS[part.unit])
                if lead is not None:
                    yield from self._leads(at + 1, rest[width:], {**found, "lead": lead}, context)
            return
        if part.kind == "time":
            for width in range(1, min(len(_NUMBER_LETTERS.match(rest)[0]), _LONGEST_NUMBER) + 1):  # type: ignore[index]
                if _NUMBER.fullmatch(rest[:width]) and math.isfinite(float(rest[:width])):
                    yield from self._leads(at + 1, rest[width:], {**found, "lead": code_of(float(rest[:width]))}, context)
            return
        if part.kind == "valid":
            taken = _take_time(rest, part.text)
            if taken is not None:
                yield from self._leads(at + 1, taken[1], {**found, **taken[0]}, context)
            return
        if part.kind == "literal":
            text = part.text
        elif part.kind == "base":
            text = context.base.strftime(part.text)
        else:
            text = _member(part, context, self.text)
        if rest.startswith(text):
            yield from self._leads(at + 1, rest[len(text):], found, context)


_NUMBER_LETTERS, _NUMBER = re.compile("[0-9.e+-]*"), re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
_LONGEST_NUMBER = 400  # the largest float64 has 309 digits before the point


def _time_text(time: float, part: Part) -> str:
    """Returns a time of the model with zeros behind its sign up to the width."""
    text = number_text(abs(time)) if part.decimals < 0 else f"{abs(time):.{part.decimals}f}"
    sign = "-" if time < 0 else ""
    return sign + text.rjust(part.width - len(sign), "0")


def _after(context: Context, lead: int) -> Moment:
    return Moment.of(context.base.seconds + context.time.floor_seconds(lead), context.base.calendar)


def _changes(part: Part) -> bool:
    return part.kind in ("lead", "time") or (part.kind == "valid" and re.search("%[^%]", part.text.replace("%%", "")) is not None)


def _member(part: Part, context: Context, text: str) -> str:
    if context.member is None:
        raise SettingsError(f'file pattern "{text}" asks for {{member}}, but no member= is given')
    return f"{context.member:0{part.width}d}" if part.width else str(context.member)


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except (FileNotFoundError, NotADirectoryError):
        return []


def _components(parts: tuple[Part, ...], context: Context, text: str) -> list[tuple[str | None, re.Pattern[str]]]:
    """Returns, for each directory of the pattern and for the file name: its text, or None if it changes with the
    lead, and a regular expression of its names."""
    pieces: list[list[tuple[str, bool]]] = [[]]
    for part in parts:
        if part.kind in ("lead", "valid", "time"):
            shape = r"\d+" if part.kind == "lead" else "[0-9.e+-]+" if part.kind == "time" else _time_shape(part.text)
            for number, piece in enumerate(shape.split("/")):
                if number:
                    pieces.append([])
                pieces[-1].append((piece, True))
            continue
        fixed = part.text if part.kind == "literal" else context.base.strftime(part.text) if part.kind == "base" else _member(part, context, text)
        for number, piece in enumerate(fixed.split("/")):
            if number:
                pieces.append([])
            pieces[-1].append((piece, False))
    out: list[tuple[str | None, re.Pattern[str]]] = []
    for piece_list in pieces:
        changes = any(changing for _, changing in piece_list)
        literal = None if changes else "".join(piece for piece, _ in piece_list)
        out.append((literal, re.compile("".join(piece if changing else re.escape(piece) for piece, changing in piece_list))))
    return out


def _time_shape(form: str) -> str:
    pieces = re.findall("%.|.", form, re.S)
    return "".join("%" if each == "%%" else rf"-?\d{{{_LETTERS[each[1]]},}}" if each[0] == "%" else "/" if each == "/" else re.escape(each) for each in pieces)


def _take_time(rest: str, form: str) -> tuple[dict[str, int], str] | None:
    found = {}
    for each in re.findall("%.|.", form, re.S):
        if each[0] == "%" and each != "%%":
            width = _LETTERS[each[1]]
            if not re.match(rf"[0-9]{{{width}}}", rest):
                return None
            found[each[1]] = int(rest[:width])
            rest = rest[width:]
        elif rest.startswith(each[-1]):
            rest = rest[1:]
        else:
            return None
    return found, rest


def _lead_of(found: dict[str, int], context: Context) -> Iterator[int]:
    """Yields the smallest lead whose valid time has the numbers in `found`. If that time is before the base time,
    yields lead 0 first, which may have the same numbers."""
    if "lead" in found:
        yield found["lead"]
        return
    base = context.base
    year = found.get("Y")
    if year is None:
        year = base.year
        if "y" in found:
            year = year - year % 100 + found["y"] + (100 if found["y"] < year % 100 else 0)
    moment = Moment(year, 1 if "j" in found else max(found.get("m", 1), 1), 1 if "j" in found else max(found.get("d", 1), 1),
                    found.get("H", 0), found.get("M", 0), found.get("S", 0), base.calendar)
    if moment.is_valid:
        seconds = moment.seconds - base.seconds + (found["j"] - 1) * 86400 if "j" in found else moment.seconds - base.seconds
        for each in (max(0, seconds), seconds if seconds < 0 and _is_one_time(found) else None):
            lead = None if each is None else context.time.lead_at(each)
            if lead is not None:
                yield lead


def _is_one_time(found: dict[str, int]) -> bool:
    """Returns True if the numbers determine one time: a shorter unit never appears without the longer ones."""
    has_day = "j" in found or ("m" in found and "d" in found)
    return "Y" in found and all(longer for unit, longer in (("d", "m" in found), ("H", has_day), ("M", "H" in found), ("S", "M" in found)) if unit in found)


def _mistake(text: str, at: int, what: str) -> SettingsError:
    return SettingsError(f'file pattern "{text}", position {at + 1}: {what}; valid are {_FORMS}')


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    """Joins literal texts that follow one another into one part."""
    before: Part | None = None
    for part in parts:
        if before and before.kind == part.kind == "literal":
            before = replace(before, text=before.text + part.text)
            continue
        if before:
            yield before
        before = part
    if before:
        yield before


def _scan(text: str) -> Iterator[Part]:
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in "{}" and text[at + 1:at + 2] == letter:
            yield Part("literal", letter)
            at += 2
        elif letter == "{":
            end = text.find("}", at)
            if end < 0:
                raise _mistake(text, at, '"{" is never closed')
            yield _place(text, at, text[at + 1:end])
            at = end + 1
        elif letter == "}":
            raise _mistake(text, at, '"}" without "{" before it')
        elif letter == "\0":
            raise _mistake(text, at, "a zero byte")
        else:
            yield Part("literal", letter)
            at += 1
    if text.endswith("/"):
        raise _mistake(text, len(text) - 1, "this names a directory and no file")


def _place(text: str, at: int, inside: str) -> Part:
    name, colon, form = inside.partition(":")
    if name in ("base", "valid"):
        form = form if colon else "%Y%m%d%H"
        for each in re.findall("%.?|.", form, re.S) or [""]:
            if each in ("", "{") or (each[0] == "%" and (len(each) < 2 or each[1] not in "YymdHMSj%")):
                raise _mistake(text, at, f'unknown "{each}" in a time format, which takes %Y %m %d %H %M %S %j %y %%')
        return Part(name, form)
    if name == "lead":
        unit = form.lstrip("0123456789")
        if unit not in _UNITS:
            raise _mistake(text, at, "{lead} needs its unit, d, h, m, s, ms, us or ns, as in {lead:h} or {lead:03h}")
        return Part("lead", unit=unit, width=_width(text, at, form[:len(form) - len(unit)]))
    if name == "time":
        return _time_place(text, at, form)
    if name == "member":
        return Part("member", width=_width(text, at, form))
    nearest = difflib.get_close_matches(name, ("base", "valid", "lead", "time", "member"), 1, 0) or ["lead"]
    raise _mistake(text, at, f'unknown "{{{inside}}}"; did you mean {{{nearest[0]}}}?')


def _time_place(text: str, at: int, form: str) -> Part:
    """Returns the part of {time}, {time:.3f} or {time:08.3f}."""
    if not form:
        return Part("time")
    width, point, decimals = form.partition(".")
    if not point or not decimals.endswith("f"):
        raise _mistake(text, at, f'"{form}" is no form of a number; expected one as 08.3f')
    if not re.fullmatch("[0-9]{1,2}", decimals[:-1]) or int(decimals[:-1]) > 18:
        raise _mistake(text, at, "the number of decimals is one from 0 to 18, as in {time:08.3f}")
    return Part("time", width=_width(text, at, width), decimals=int(decimals[:-1]))


def _width(text: str, at: int, form: str) -> int:
    if form and not re.fullmatch(r"0\d{1,2}", form) or form and not 1 <= int(form) <= 18:
        raise _mistake(text, at, f'"{form}" is no width; give a zero and the number of digits (1 to 18), as 03')
    return int(form or 0)


__all__ = ["CALENDARS", "Context", "Part", "Pattern"]
