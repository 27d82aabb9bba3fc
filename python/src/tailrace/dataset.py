# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A run as an xarray Dataset: dimensions, coordinates and attributes of CF, and lazy values."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray.core import indexing

from .cube import Cube
from .errors import NotThereError, StateError
from .head import Coordinate, Described, plain_dims
from .names import LEVEL_TYPES, level_attributes
from .time_coordinates import TimeCoordinates
from .variables import Variable

if TYPE_CHECKING:
    from .data_file import DataFile
    from .run import Run


def to_dataset(run: Run, level_type: str | None = None) -> xarray.Dataset:
    """Returns a Dataset of all fields of the run, or of those on one type of level."""
    builder = _Builder(run)
    wanted = [name for name, cube in builder.cubes.items() if level_type in (None, cube.variable.level_type)]
    statics = [name for name, static in builder.statics.items() if level_type in (None, static.variable.level_type)]
    if not wanted and (builder.cubes or not statics):
        fields = builder.cubes or builder.statics
        raise (run.lacks() if level_type is None or not fields else
               NotThereError(f'{run.pattern.text}: no field on levels of the type "{level_type}"; there are '
                             f'{", ".join(sorted({each.variable.level_type for each in fields.values()}))}'))
    return builder.dataset({name: name for name in wanted}, statics)


def to_groups(run: Run) -> dict[str, xarray.Dataset]:
    """Returns a Dataset for each type of level. A field has its own name in it, unless two fields have the same."""
    builder = _Builder(run)
    if not builder.cubes and not builder.statics:
        raise run.lacks()
    groups: dict[str, dict[str, str]] = {}
    for name, cube in builder.cubes.items():
        names = groups.setdefault(cube.variable.level_type.replace("/", "_"), {})
        own = cube.variable.field.name
        names[name] = own if own not in names.values() else name
    statics: dict[str, list[str]] = {group: [] for group in groups}
    for name, static in builder.statics.items():
        statics.setdefault(static.variable.level_type.replace("/", "_"), []).append(name)
    return {"/": xarray.Dataset(attrs=builder.attrs), **{f"/{group}": builder.dataset(groups.get(group, {}), names) for group, names in statics.items()}}


class Static:
    """A field without time."""

    def __init__(self, variable: Variable, values: np.ndarray, described: Described) -> None:
        self.variable, self.values, self.described = variable, values, described
        self.dtype, self.has_levels = values.dtype, len(variable.levels) > 1


class _Names:
    """Names of coordinates. Each name stands for one content: another content gets another name."""

    def __init__(self, taken: set[str]) -> None:
        self.taken, self.found = set(taken), {}  # type: set[str], dict[tuple[Any, ...], str]

    def of(self, name: str, content: tuple[Any, ...]) -> str:
        key = (name, content)
        if key not in self.found:
            free, number = name, 2
            while free in self.taken:
                free, number = f"{name}_{number}", number + 1
            self.taken.add(free)
            self.found[key] = free
        return self.found[key]


def _is_same(static: Static, stored: np.ndarray) -> bool:
    """Returns True if the field's values, in which NaN stands for missing reals, are those that the file stores."""
    fill, is_real = static.described.fill, stored.dtype.kind == "f"
    if is_real and fill is not None:
        stored = np.where(stored == np.asarray(fill, stored.dtype), np.asarray(np.nan, stored.dtype), stored)
    return np.array_equal(static.values, stored, equal_nan=is_real)


class _Builder:
    """The cubes of a run. Makes Datasets of some of them."""

    def __init__(self, run: Run) -> None:
        if mixed := run.mixed():
            raise StateError(mixed)
        records = list(run.records())
        self.leads = sorted({step.lead for _, step, _ in records})
        rows = {lead: row for row, lead in enumerate(self.leads)}
        self.cubes: dict[str, Cube] = {}
        for file, step, ordinal in records:
            assert file.index is not None
            variables = run.variables.of(file.index.header.fields)
            for number in np.unique(step.records["field"]).tolist():
                variable = variables[number]
                if variable.name not in self.cubes:
                    self.cubes[variable.name] = Cube(variable, _dtype(variable, file.index.header.format), len(self.leads))
                self.cubes[variable.name].add(rows[step.lead], file, step, ordinal, number)
        self.statics = self._static_fields(run, records[0][0]) if records else {}
        if not records and (foreign := run.foreign()):
            raise StateError("; ".join(foreign))
        self.header = records[0][0].index.header if records and records[0][0].index else None
        self.times = TimeCoordinates(self.header, self.leads, run.pattern.text) if self.header is not None else None
        self.shown: set[str] = set()  # the fields without time of the Dataset that is being made
        self.places: set[str] = set()  # those of them that are coordinates of others
        self.attrs: dict[str, Any] = {"Conventions": "CF-1.8"}
        if self.header is not None:
            self.attrs.update(records[0][0].source.attributes())
            # A run that was continued without a checkpoint (existing=continue) has files with several UUIDs.
            self.attrs["tailrace_run"] = " ".join(dict.fromkeys(str(file.index.header.run) for file, _, _ in records if file.index))

    def _static_fields(self, run: Run, file: DataFile) -> dict[str, Static]:
        """Returns the fields that no step has: each file has those without time. A NetCDF-4 file tells of them once it
        is finished."""
        assert file.index is not None
        found = {}
        for number, variable in enumerate(run.variables.of(file.index.header.fields)):
            if variable.name in self.cubes:
                continue
            try:
                values = file.static(file.index.header, number)
            except NotThereError:
                continue
            if values is not None:
                found[variable.name] = Static(variable, values, file.source.cf_described(number))
        return found

    def dataset(self, wanted: dict[str, str], statics: list[str]) -> xarray.Dataset:
        """Returns a Dataset of the cubes in `wanted`, under the names given there, and of fields without time."""
        assert self.times is not None
        # Files in which no field has time have no variable of time.
        coordinates = {name: each for name, each in self.times.variables().items() if self.cubes or name == "realization"}
        reserved = {"realization", *coordinates}
        names = _Names({*wanted.values(), *statics, *coordinates})
        self.shown, self.places = set(statics) - reserved, set()
        variables, intervals = {}, _Intervals(names, self.times)
        for name, shown in wanted.items():
            cube = self.cubes[name]
            shown = shown if shown not in reserved else f"{shown}_{cube.variable.level_type}"
            file, step, number, record = cube.first()
            described = file.source.described(number, step, record)
            variables[shown] = self._variable(cube, described, names, coordinates, (self.times.dimension,))
            if _is_of_intervals(described) and (bounds := intervals.name_of(cube.begins())):
                variables[shown].attrs["time_bounds"] = bounds
        for name in statics:
            static = self.statics[name]
            shown = name if name not in reserved and name not in variables else f"{name}_{static.variable.level_type}"
            variables[shown] = self._variable(static, static.described, names, coordinates, ())
        intervals.add_to(coordinates)
        return xarray.Dataset(variables, coordinates, self.attrs).set_coords(sorted(self.places))

    def _is_place(self, name: str, coordinate: Coordinate) -> bool:
        """Returns True if the coordinate is a field without time that the Dataset has (attributes="coordinates=..."). The field becomes the coordinate."""
        static = self.statics.get(name) if name in self.shown else None
        found = static is not None and _is_same(static, coordinate.values())
        if found:
            self.places.add(name)
        return found

    def _variable(self, cube: Cube | Static, described: Described, names: _Names, coordinates: dict[str, xarray.Variable], steps: tuple[str, ...]) -> xarray.Variable:
        shape = cube.variable.field.shape
        dims = described.dims if len(described.dims) == len(shape) else plain_dims(shape)
        renamed = {dim: names.of(dim, _content(described.coordinates.get(dim), extent)) for dim, extent in zip(dims, shape)}
        level = self._level(cube, described, names, coordinates, renamed)
        for each, coordinate in described.coordinates.items():
            if self._is_place(each, coordinate):
                continue
            shown = renamed.get(each) or names.of(each, _content(coordinate, 0))
            if shown not in coordinates and each != described.level:
                coordinates[shown] = xarray.Variable([renamed.get(dim, dim) for dim in coordinate.dims], coordinate.values(), dict(coordinate.attrs))
        attrs = dict(described.attrs)
        level_dims = (level,) if cube.has_levels and level else ()
        all_dims = (*steps, *level_dims, *(renamed[dim] for dim in dims))
        if isinstance(cube, Cube):
            cube.fill = described.fill
            variable = xarray.Variable(all_dims, indexing.LazilyIndexedArray(cube), attrs)
            variable.encoding = {"preferred_chunks": {dim: 1 for dim in (*steps, *level_dims)}}
        else:
            variable = xarray.Variable(all_dims, cube.values, attrs)
        if cube.dtype.kind in "iu" and described.fill is not None:
            variable.encoding["_FillValue"] = described.fill
        return variable

    def _level(self, cube: Cube | Static, described: Described, names: _Names, coordinates: dict[str, xarray.Variable], renamed: dict[str, str]) -> str | None:
        """Returns the coordinate of the levels: a scalar if there is one level, and None if that has no value, like
        the surface."""
        field = cube.variable.field
        known = LEVEL_TYPES.get(field.level_type)
        if not cube.has_levels and known is None and field.levels[0] == 0:
            return None
        base = described.level or (known.dimension if known else field.level_type or "level")
        name = names.of(base, (field.level_type, field.levels))
        renamed[base] = name
        if name not in coordinates:
            own = described.coordinates.get(base)
            attrs = dict(own.attrs) if own else level_attributes(field.level_type)
            values = np.array(field.levels)
            coordinates[name] = xarray.Variable((name,), values, attrs) if cube.has_levels else xarray.Variable((), values[0], attrs)
        return name


class _Intervals:
    """The intervals of fields. Fields that were put at the same leads and have the same begins share one set of
    bounds."""

    def __init__(self, names: _Names, times: TimeCoordinates) -> None:
        self.names, self.times = names, times
        self.found: list[list[int | None]] = []

    def name_of(self, begins: list[int | None]) -> str | None:
        """Returns the name of the bounds for these begins, or None if no file states any."""
        if all(begin is None for begin in begins):
            return None
        if begins not in self.found:
            self.found.append(begins)
        return self._name(self.found.index(begins))

    def _name(self, number: int) -> str:
        time = self.times.name
        return self.names.of(f"{time}_bnds" if number == 0 else f"{time}_{number + 1}_bnds", ("interval", number))

    def add_to(self, coordinates: dict[str, xarray.Variable]) -> None:
        """Adds the bounds, and for each set of bounds but the first a time of its own, as in the NetCDF files."""
        times = self.times
        for number, begins in enumerate(self.found):
            time = coordinates[times.name] if number == 0 else coordinates[times.name].copy()
            ends = [None if begin is None else lead for begin, lead in zip(begins, times.leads)]
            bounds = np.stack([times.moments(begins), times.moments(ends)], axis=1)
            coordinates[self._name(number)] = xarray.Variable((times.dimension, "bnds"), bounds)
            coordinates[times.name if number == 0 else self.names.of(f"{times.name}_{number + 1}", ("time", number))] = time
            time.attrs["bounds"] = self._name(number)


def _is_of_intervals(described: Described) -> bool:
    method = str(described.attrs.get("cell_methods", ""))
    return method.startswith("time: ") and method != "time: point"


def _dtype(variable: Variable, format_: str) -> np.dtype:
    if format_ in ("grib2", "grib1"):
        return np.dtype(np.float32 if variable.field.type == 5 else np.float64)
    return variable.field.dtype.newbyteorder("=")


def _content(coordinate: Coordinate | None, extent: int) -> tuple[Any, ...]:
    """Returns a key that differs between two coordinates of one name if their contents differ."""
    if coordinate is None:
        return (extent,)
    values = np.asarray(coordinate.values())
    return (values.shape, values.tobytes(), repr(sorted(coordinate.attrs.items(), key=lambda each: each[0])))
