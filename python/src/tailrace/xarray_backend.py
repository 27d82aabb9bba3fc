# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""`xarray.open_dataset(path, engine="tailrace")`, for files with an index beside them, for patterns, and for
indexes."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import xarray
from xarray.backends import BackendEntrypoint

from .calendar import Duration
from .index import begins_as_index
from .run import Run


class TailraceBackend(BackendEntrypoint):
    """Opens what Tailrace has written. Messages are decoded one at a time, when their values are asked for."""

    description = "Open files of Tailrace through their index: GRIB, NetCDF, Zarr and raw, also while a model writes them"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "base", "member", "calendar", "run", "level_type")
    supports_groups = True

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, base: Any = None, member: int | None = None,
                     calendar: str = "proleptic_gregorian", run: str | None = None, level_type: str | None = None) -> xarray.Dataset:
        """Returns all committed steps. `filename_or_obj` is a data file, its index, or a pattern with `base` and
        `member`."""
        data = _opened(filename_or_obj, base, member, calendar, run).to_xarray(level_type=level_type)
        drop = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
        return data.drop_vars(drop, errors="ignore")

    def open_groups_as_dict(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, base: Any = None,
                            member: int | None = None, calendar: str = "proleptic_gregorian", run: str | None = None) -> dict[str, xarray.Dataset]:
        """Returns one Dataset for each type of level."""
        from .dataset import to_groups
        drop = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
        return {group: data.drop_vars(drop, errors="ignore")
                for group, data in to_groups(_opened(filename_or_obj, base, member, calendar, run)).items()}

    def open_datatree(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any) -> xarray.DataTree:
        return xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Returns True for an index, and for a file with an index beside it."""
        try:
            path = os.fspath(filename_or_obj)
        except TypeError:
            return False
        if not isinstance(path, str):
            return False
        try:
            return any(begins_as_index(each) for each in (path, path + ".trx", path + ".idx"))
        except OSError:
            return False


def _opened(given: Any, base: Any, member: int | None, calendar: str, run: str | None) -> Run:
    path = os.fspath(given)
    if path.endswith((".trx", ".idx")) and begins_as_index(path):
        path = path[:-4]
    # An existing file is opened under this name, even if the name has braces.
    if os.path.exists(path):
        path = path.replace("{", "{{").replace("}", "}}")
    return Run(path, base, member, calendar, run)
