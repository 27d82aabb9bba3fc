# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A run: the files of a stream, also while a model still writes them."""
from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .calendar import NANOSECONDS, Duration, Lead, Moment, calendar_number, nanoseconds_text, parse_duration, parse_nanoseconds, parse_time, public
from .data_file import DataFile, told
from .errors import FormatError, NotThereError, SettingsError, TailraceError
from .index import IndexField, IndexStep, find_index, load_index
from .manifest import ManifestEntry, digest, manifest
from .pattern import Context, Pattern
from .threads import side_by_side
from .time_axis import TIME_UNITS, TimeAxis, number_text
from .variables import Variable, Variables, absent

if TYPE_CHECKING:
    import datetime

    import xarray


class Step:
    """All fields valid at one lead. `step["t"]` decodes all levels of a field, in several threads, into a new numpy
    array."""

    def __init__(self, run: Run, file: DataFile, step: IndexStep, ordinal: int) -> None:
        assert file.index is not None
        self._run, self._file, self._ordinal = run, file, ordinal
        self._header = file.index.header
        self._axis, self._lead = self._header.time, step.lead
        numbers = run.variables.of(self._header.fields)
        self._fields = {numbers[number].name: int(number) for number in np.unique(step.records["field"])}
        self._records = step.records
        #: The number of the step in its stream.
        self.number = step.number

    @property
    def path(self) -> str:
        """The file that holds the step."""
        return self._file.path

    @property
    def lead(self) -> Lead | np.timedelta64:
        """The time from the base time to the step: a timedelta that prints as 45h, or numpy's timedelta64 where leads
        are counted in nanoseconds. Raises NotThereError in streams with time=model, which have `time` instead."""
        return self._axis.duration(self._lead, self.path)

    @property
    def time(self) -> float:
        """The time of the step as the variable of time has it: the model's time, or the lead in time_units=."""
        return self._axis.number(self._lead)

    @property
    def base(self) -> datetime.datetime | Moment:
        """The base time: a datetime in UTC, or a Moment in another calendar. Raises NotThereError if times count from
        no date."""
        self._axis.check_base(self.path)
        return public(self._header.base)

    @property
    def valid(self) -> datetime.datetime | Moment:
        """The time for which the step is valid. A Moment, too, where leads are counted in nanoseconds. Raises
        NotThereError if times count from no date."""
        return self._axis.moment(self._lead, self._header.base, self.path)

    @property
    def member(self) -> int | None:
        """The number of the run in its ensemble."""
        return self._header.member

    @property
    def names(self) -> list[str]:
        """The fields that were put in the step."""
        return list(self._fields)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        axis = self._axis
        at = axis.at(self._lead) if axis.is_model else signed(axis.short(self._lead))
        is_fine = axis.is_model or axis.count(self._lead, NANOSECONDS["s"]) is None
        valid = "" if not axis.has_base else f", valid {self.valid if is_fine else format(self.valid, '%Y-%m-%d %H:%M')}"
        return f"<tailrace.Step {at}{valid}, {', '.join(self._fields)}>"

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns all levels of a field: (level, y, x), or (y, x) if it has one level. Levels that were not put are
        NaN. A field without time (time=none) is read from the file, in every step."""
        if (values := self._static(name)) is not None:
            return values
        number, field = self._number(name)
        put = sorted(set(self._records["level"][self._records["field"] == number].tolist()))
        read = dict(zip(put, side_by_side(lambda level: self._record(number, level), put)))
        levels = list(read.values())
        if len(put) < len(field.levels):
            gap = absent(field.shape, levels[0].dtype, self._file.fill(self._header, number) if levels[0].dtype.kind in "iu" else None)
            levels = [read.get(level, gap) for level in range(len(field.levels))]
        return levels[0] if len(levels) == 1 else np.stack(levels)

    def read(self, name: str, level: float) -> np.ndarray:
        """Returns one level of a field, given by its value (850 for 850 hPa). Decodes one message."""
        values = self._static(name)
        number, field = self._number(name) if values is None else (-1, next(each for each in self._header.fields if each.name == name))
        if level not in field.levels:
            raise NotThereError(f'{self.path}: "{name}" has no level {level}; it has {", ".join(f"{each:g}" for each in field.levels)}')
        if values is not None:
            return values[field.levels.index(level)] if len(field.levels) > 1 else values
        return self._record(number, field.levels.index(level))

    def _static(self, name: str) -> np.ndarray | None:
        """Returns all levels of a field that no step has, from the file, or None."""
        if name in self._fields:
            return None
        numbers = [number for number, each in enumerate(self._header.fields) if each.name == name]
        if not numbers or any((step.records["field"] == numbers[0]).any() for step in self._file.steps):
            return None
        return self._file.static(self._header, numbers[0])

    def _number(self, name: str) -> tuple[int, IndexField]:
        if name not in self._fields:
            raise NotThereError(f'{self.path}: "{name}" was not put at {self._where()}; there are {", ".join(self._fields)}')
        return self._fields[name], self._header.fields[self._fields[name]]

    def _where(self) -> str:
        return self._axis.at(self._lead) if self._axis.is_model else f"lead {self._axis.short(self._lead)}"

    def _record(self, number: int, level: int) -> np.ndarray:
        return self._file.record(self._header, self._lead, self._ordinal, number, level)


class Run:
    """The files that a pattern names. Iterating yields the committed steps in the order of their leads; `follow`
    waits for more."""

    def __init__(self, pattern: str | os.PathLike[str], base: Any = None, member: int | None = None, calendar: str = "proleptic_gregorian",
                 run: str | uuid.UUID | None = None, leads: Iterable[Duration] | None = None, times: Iterable[float] | None = None) -> None:
        self.pattern = Pattern(os.fspath(pattern))
        if base is None and self.pattern.uses_time:
            raise SettingsError(f'file pattern "{self.pattern.text}" names times; give base="2026-03-01T00:00Z"')
        if member is None and self.pattern.uses_member:
            raise SettingsError(f'file pattern "{self.pattern.text}" asks for {{member}}; give member=')
        self._base = parse_time(base, calendar_number(calendar)) if base is not None else None
        self.uuid = uuid.UUID(str(run)) if run is not None else None
        self._leads = None if leads is None else list(leads)
        self._times = None if times is None else [float(time) for time in times]
        if self._leads is not None and self._times is not None:
            raise SettingsError("leads= and times= are both given: a stream has the ones or the others")
        if not all(map(math.isfinite, self._times or ())):
            raise SettingsError("times=: a step is at a finite time")
        self.context = Context(self._base or Moment(1970), member, self._likely_axis())
        self.variables = Variables()
        self._files: dict[str, DataFile] = {}
        self._earlier: set[str] = set()  # files of earlier runs
        self.refresh()

    def refresh(self) -> None:
        """Looks at the files again. Steps that the caller already has stay as they are."""
        for _ in range(2):
            found = [(lead, path) for lead, path in self.pattern.find(self.context) if lead >= 0 or self.axis.is_model or self._has_steps_before_base(path)]
            files = {path: self._files.get(path) or DataFile(path, lead) for lead, path in found}
            for lead, path in found:
                files[path].run, files[path].lead = self.uuid, lead
                files[path].refresh()
            self._files = files
            # The first index tells how leads are counted, by which the files are found again.
            axes = [file.index.header.time for file in self._ours() if file.index]
            if not axes or axes[0] == self.axis:
                break
            self.pattern.check(axes[0])
            self.context = replace(self.context, time=axes[0])

    @property
    def axis(self) -> TimeAxis:
        """The axis of times, by which the leads in indexes are counted. A guess as long as there is no index."""
        return self.context.time

    def _likely_axis(self) -> TimeAxis:
        """Returns an axis with which names of files are understood before there is an index: with the longest unit, of
        at most a second, of which the pattern's units and `leads` are whole numbers."""
        if self.pattern.names_model_times or self._times is not None:
            return TimeAxis(True, self._base is not None, model_units="s")
        lengths = [NANOSECONDS[unit] for unit in self.pattern.units] + [int(parse_nanoseconds(lead)) for lead in self._leads or () if isinstance(lead, str)]
        unit = max(unit.nanoseconds for unit in TIME_UNITS if unit.nanoseconds <= NANOSECONDS["s"] and not any(each % unit.nanoseconds for each in lengths))
        return TimeAxis(nanoseconds=unit, shown=unit)

    @property
    def leads(self) -> list[int] | None:
        """The leads that a complete run must have, in the unit of its leads (seconds, unless the stream has another);
        None: those between the first and the last that are there. For times of the model, their codes. Raises
        SettingsError if the stream has no such leads."""
        axis = self.axis
        if self._times is not None:
            if not axis.is_model:
                raise SettingsError(f"{self.pattern.text}: the stream has leads: give leads= in place of times=")
            return sorted({axis.lead_of_number(time) for time in self._times})
        if self._leads is None:
            return None
        if axis.is_model:
            raise SettingsError(f"{self.pattern.text}: the steps are at times of the model's own (time=model): give times= in place of leads=")
        wanted = {each: axis.lead_of_length(each) for each in self._leads}
        for each, lead in wanted.items():
            if lead is None:
                raise SettingsError(f'{self.pattern.text}: leads=: "{each}" is no whole number of the units of leads, which are {axis.unit}')
        return sorted({lead for lead in wanted.values() if lead is not None})

    def _has_steps_before_base(self, path: str) -> bool:
        """Returns True if a file for times before the base time belongs to this run. Earlier runs may have left many
        such files: the index of each is read only once, and damage in it is no error of this run."""
        if path in self._files or path in self._earlier:
            return path in self._files
        try:
            is_ours = load_index(find_index(path)).header.identity[0] == self._base
        except (NotThereError, FileNotFoundError):
            return False
        except (TailraceError, OSError):
            is_ours = False
        if not is_ours:
            self._earlier.add(path)
        return is_ours

    @property
    def files(self) -> list[str]:
        """The existing data files, in the order of their leads."""
        return [file.path for file in self._ours() if os.path.exists(file.path)]

    @property
    def base(self) -> datetime.datetime | Moment | None:
        """The base time, None if none was given and nothing is committed yet, or if times count from no date."""
        indexed = [file.index.header for file in self._ours() if file.index]
        if indexed:
            return public(indexed[0].base) if indexed[0].time.has_base else None
        return public(self.context.base) if self.pattern.uses_time else None

    @property
    def fields(self) -> dict[str, Variable]:
        """The fields of the run, by name."""
        for file in self._ours():
            if file.index:
                self.variables.of(file.index.header.fields)
        return dict(self.variables.by_name)

    @property
    def steps(self) -> list[Step]:
        """The steps that were committed when the run was opened, refreshed or followed last."""
        steps = [step for file in self._ours() for step in self._steps_of(file, len(file.steps))]
        return sorted(steps, key=lambda step: step._lead)

    def __iter__(self) -> Iterator[Step]:
        self.refresh()
        return iter(self.steps)

    def __len__(self) -> int:
        return sum(len(file.steps) for file in self._ours())

    def step(self, lead: Duration | None = None, *, time: float | None = None) -> Step:
        """Returns the step at a lead ("6h", "250ms" or seconds), or at a time, which is compared with `Step.time`. Of
        several steps the last one counts."""
        if (lead is None) == (time is None):
            raise SettingsError('a step is at a lead or at a time: give one of them, as step("6h") or step(time=0.667)')
        self.refresh()
        if time is not None:
            return self._step_at(time)
        assert lead is not None
        nanoseconds = parse_nanoseconds(lead)
        if self.axis.is_model:
            raise SettingsError(f"{self.pattern.text}: the steps are at times of the model's own (time=model): write step(time=...)")
        wanted = self.axis.lead_of_length(lead)
        for step in reversed(self.steps):
            if step._lead == wanted:
                return step
        raise self.lacks(f"step at lead {nanoseconds_text(round(nanoseconds)) if wanted is None else self.axis.short(wanted)}")

    def _step_at(self, time: float) -> Step:
        steps = self.steps
        for step in reversed(steps):
            if step.time == time:
                return step
        nearest = min(steps, key=lambda each: abs(each.time - time), default=None)
        raise self.lacks(f"step at time {number_text(time)}" + (f" (the nearest is at {nearest.time!r})" if nearest else ""))

    def lacks(self, what: str = "step") -> NotThereError:
        """Returns the error for a step that does not exist. Its text says if the files have no index at all, like files
        of other programs."""
        there = [file for file in self._files.values() if os.path.exists(file.path)]
        if not there or any(file.index for file in self._files.values()):
            return NotThereError(f"{self.pattern.text}: no {what} is committed")
        return NotThereError(f"{there[0].path}: there is no index {there[0].path}.trx beside it. Another program has written the file, or the index was removed: "
                             "read it with a reader of its format (xarray: another engine)")

    def __repr__(self) -> str:
        return f"<tailrace.Run {self.pattern.text}: {len(self)} steps in {len(self._files)} files>"

    # ---- following ---------------------------------------------------------------------------------------------

    def follow(self, timeout: Duration | None = None) -> Iterator[Step]:
        """Yields each step once it is durable, in the order of the leads, and waits for more. Ends when the stream is
        closed and all of `leads` have come, or when no step has come for `timeout` ("20min"; None waits for ever).

        The model does not notice. It may be killed, restarted and cut back meanwhile: a step that it writes again is
        not yielded again."""
        limit = None if timeout is None else parse_duration(timeout)
        seen: set[tuple[int, int]] = set()
        since, pause = time.monotonic(), 0.01
        while True:
            was_open = self._is_open()
            self.refresh()
            came = False
            for key, step in self._durable(seen, was_open):
                seen.add(key)
                came = True
                yield step
            if came:
                since, pause = time.monotonic(), 0.01
                continue
            if not was_open and seen and self._all_closed() and not set(self.leads or ()) - {lead for lead, _ in seen}:
                return
            if limit is not None and time.monotonic() - since >= limit:
                return
            left = pause if limit is None else min(pause, max(0.0, since + limit - time.monotonic()))
            time.sleep(left)
            pause = min(2 * pause, 0.5)

    def _durable(self, seen: set[tuple[int, int]], is_open: bool) -> Iterator[tuple[tuple[int, int], Step]]:
        """Yields the steps on storage that are not in `seen`. Stops at a file that is still being written, so that
        leads are yielded in ascending order."""
        for file in self._ours():
            index = file.index
            if index is None:
                # The writer may be about to make the index.
                if is_open and os.path.exists(file.path):
                    return
                continue
            if index.tail == "damaged":
                raise FormatError(f"{index.path}: {index.tail_text}")
            ordinals = _ordinals(index.steps)
            if any((step.lead, number) not in seen for step, number in zip(index.steps, ordinals)):
                count = file.durable_steps()
                for step, taken, number in zip(index.steps[:count], self._steps_of(file, count), ordinals):
                    if (step.lead, number) not in seen:
                        yield (step.lead, number), taken
                if count < len(index.steps):
                    return
            if not index.closed:
                return

    def _ours(self) -> list[DataFile]:
        """Returns the files that do not belong to other runs."""
        return [file for file in self._files.values() if not self._is_foreign(file)]

    def _is_foreign(self, file: DataFile) -> bool:
        """Returns True if a file has another base time, member or run than the given ones. Compares only those that
        were given."""
        if file.index is None:
            return False
        header = file.index.header
        return (self._base not in (None, header.identity[0]) or self.context.member not in (None, header.member) or self.uuid not in (None, header.run))

    def foreign(self) -> list[str]:
        """Returns a description of one file with another base time or member than the given ones, in a list; an
        empty list if there is none."""
        headers = [(file.path, file.index.header) for file in self._files.values() if file.index]
        others = [each for each in headers if self._base not in (None, each[1].identity[0]) or self.context.member not in (None, each[1].member)]
        more = f" (and {len(others) - 1} files more)" if len(others) > 1 else ""
        return [f"{path}: is of another run: {told(header)}{more}" for path, header in others[:1]]

    def mixed(self) -> str:
        """Returns a text that names two files with different base times, members or axes of times, or "" if all agree."""
        known = [(file.path, file.index.header) for file in self._ours() if file.index]
        for path, header in known:
            if header.identity != known[0][1].identity:
                return (f"{self.pattern.text} finds files of different runs: {known[0][0]} ({told(known[0][1])}) and {path} ({told(header)}); "
                        "say which is meant by base=, member= or run=")
        return ""

    def _steps_of(self, file: DataFile, count: int) -> list[Step]:
        steps = file.steps[:count]
        return [Step(self, file, step, number) for step, number in zip(steps, _ordinals(steps))]

    def _is_open(self) -> bool:
        return os.path.exists(self.pattern.stream_lock(self.context))

    def _all_closed(self) -> bool:
        """Returns True if no file is being written. The stream must not be open any more, so that no new index will
        appear."""
        return all(file.is_closed for file in self._ours() if file.index)

    # ---- completeness ------------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """True if the stream was closed and nothing is missing."""
        return not self.missing

    @property
    def missing(self) -> list[str]:
        """The steps and files that the run lacks: "+045h: not written" (no file), "+048h: not committed" (a file
        without this step in its index), or a file that is damaged or not finished. Without `leads=`, a step is
        missing where the spacing of the leads shows a gap; the spacing of times of the model shows none."""
        self.refresh()
        files, have = self._ours(), {step.lead for file in self._ours() for step in file.steps}
        begun = {file.lead for file in files if not file.steps and self.pattern.depends_on_lead}
        leads = self.leads
        wanted = set(leads) if leads is not None else have | begun if self.axis.is_model else _with_gaps(have | begun)
        out = [f"{self._at(lead)}: {self._why(lead)}" for lead in sorted((wanted | begun) - have)]
        for file in files:
            if file.index and file.index.tail == "damaged":
                out.append(f"{file.path}: damaged: {file.index.tail_text}")
            elif not file.is_closed and (file.steps or not self.pattern.depends_on_lead):
                out.append(f"{file.path}: not finished" if file.index or os.path.exists(file.path) else f"{file.path}: not written")
        if not out and self._is_open():
            out.append(f"{self.pattern.stream_lock(self.context)}: the stream is still open, or was killed")
        if mixed := self.mixed():
            out.append(mixed)
        return out or ([] if have else [f"{self.pattern.text}: not written", *self.foreign()])

    def _at(self, lead: int) -> str:
        return self.axis.at(lead) if self.axis.is_model else signed(self._lead_text(lead))

    def _lead_text(self, lead: int) -> str:
        return self.pattern.lead_text(lead, self.axis) or self.axis.short(lead)

    def _why(self, lead: int) -> str:
        try:
            path = self.pattern.expand(lead, self.context)
        except SettingsError:  # no name is given to a lead that is no whole number of the pattern's units
            if self.axis.is_default:
                raise
            return "not written, and the pattern has no name for it"
        if path in self._files and self._is_foreign(self._files[path]):
            return "not written, a file of another run has its name"
        return "not committed" if os.path.exists(path) or os.path.exists(path + ".trx") else "not written"

    def verify(self) -> list[str]:
        """Compares size and XXH3-128 of each finished file with the manifest beside it, and returns the differences.
        Reads every byte. Leaves out stores (Zarr), for which there is `tailrace verify`."""
        out = []
        known: dict[str, dict[str, ManifestEntry]] = {}
        for file in self._ours():
            directory, name = os.path.split(file.path)
            if directory not in known:
                try:
                    known[directory] = manifest(directory or ".")
                except FileNotFoundError:
                    known[directory] = {}
                    out.append(f"{os.path.join(directory, 'manifest.jsonl')}: there is no manifest (manifest=off), so nothing is known of the files beside it")
            if not known[directory]:
                continue
            entry = known[directory].get(name)
            if entry is None:
                out.append(f"{file.path}: the manifest does not list it")
            elif not os.path.isdir(file.path) and (os.stat(file.path).st_size != entry.size or digest(file.path) != entry.xxh3_128):
                out.append(f"{file.path}: its bytes are not those of the manifest")
        return out

    # ---- xarray ------------------------------------------------------------------------------------------------

    def to_xarray(self, chunks: Any = None, level_type: str | None = None) -> xarray.Dataset:
        """Returns all committed steps as one lazy Dataset (lead, level, y, x) with names and units of CF; for times
        of the model the first dimension is that of the variable of time. A message
        is decoded when its values are asked for. `chunks={}` makes dask arrays with one chunk for each message.
        `level_type` selects the fields on one type of level."""
        from .dataset import to_dataset
        self.refresh()
        data = to_dataset(self, level_type)
        if chunks is None:
            return data
        return data.chunk(chunks or {dim: 1 for each in data.variables.values() for dim in each.encoding.get("preferred_chunks", ())})

    def to_datatree(self) -> xarray.DataTree:
        """Returns the same with one group for each type of level, so that fields of one name do not collide."""
        import xarray

        from .dataset import to_groups
        self.refresh()
        return xarray.DataTree.from_dict(to_groups(self))

    def records(self) -> Iterator[tuple[DataFile, IndexStep, int]]:
        """Yields all committed steps with their files, and their numbers among the steps of one lead."""
        for file in self._ours():
            yield from ((file, step, number) for step, number in zip(file.steps, _ordinals(file.steps)))


def signed(lead: str) -> str:
    """Returns the text of a lead with its sign: +45h, -1h."""
    return lead if lead.startswith("-") else f"+{lead}"


def _ordinals(steps: Iterable[IndexStep]) -> list[int]:
    """Returns the number of each step among those with the same lead."""
    seen: dict[int, int] = {}
    out = []
    for step in steps:
        out.append(seen.get(step.lead, 0))
        seen[step.lead] = out[-1] + 1
    return out


def _with_gaps(leads: set[int]) -> set[int]:
    """Returns the leads and those missing among them. A distance is a gap if it is a multiple of the distance
    before, and if that distance comes again or the leads end. So a run may change its spacing once and for all."""
    ordered = sorted(leads)
    distances = np.diff(ordered).tolist()
    out, spacing = set(ordered), 0
    for number, distance in enumerate(distances):
        is_gap = spacing and distance > spacing and distance % spacing == 0 and (spacing in distances[number + 1:] or number + 1 == len(distances))
        if is_gap and distance // spacing <= 100_000:
            out.update(range(ordered[number], ordered[number + 1], spacing))
        elif not is_gap:
            spacing = distance
    return out
