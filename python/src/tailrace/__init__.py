# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads what Tailrace writes, without MPI, also while a model still writes it.

    import tailrace as tr
    run = tr.open("fc_{base:%Y%m%d%H}+{lead:03h}.grib2", base="2026-03-01T00:00Z")
    for step in run.follow(timeout="20min"):        # each step once it is durable
        print(step.valid, step["t"].mean())
    assert run.complete, run.missing
    data = run.to_xarray()                          # lazy: a message is decoded when its values are asked for
"""
from __future__ import annotations

import os as _os
import uuid as _uuid
from collections.abc import Iterable as _Iterable
from typing import Any as _Any

from .calendar import Duration as _Duration
from .calendar import Lead, Moment
from .checkpoint import Checkpoint, checkpoint
from .decode_grib import decoded_messages
from .errors import FormatError, NotThereError, SettingsError, StateError, TailraceError, UnsupportedError
from .index import Index, IndexField, IndexHeader, IndexStep, find_index, load_index
from .manifest import ManifestEntry, manifest
from .pattern import Context, Pattern
from .run import Run, Step
from .time_axis import TimeAxis
from .variables import Variable

__version__ = "0.1.0"


def open(pattern: str | _os.PathLike[str], base: _Any = None, *, member: int | None = None, calendar: str = "proleptic_gregorian",
         run: str | _uuid.UUID | None = None, leads: _Iterable[_Duration] | None = None,
         times: _Iterable[float] | None = None) -> Run:
    """Opens the files of a stream. They need not exist yet: `Run.follow` waits for them.

    `pattern` is the pattern that `tr_stream_create` got, or the path of one file. `base` ("2026-03-01T00:00Z" or a
    datetime) and `member` are needed if the pattern contains them. With `run`, a UUID, files of other runs are
    ignored. `leads` (["0h", "3h", ...] or seconds) are the leads that a complete run has; without them, a gap is
    reported where the spacing of the leads shows one. `times` ([0.0, 0.5, ...]) are its times if the stream has times
    of the model's own (time=model). How steps are timed need not be said: the files tell it. Raises SettingsError if the pattern or a time is not valid,
    FormatError if an index is damaged."""
    return Run(pattern, base, member, calendar, run, leads, times)


__all__ = ["Checkpoint", "Context", "FormatError", "Index", "IndexField", "IndexHeader", "IndexStep", "Lead", "ManifestEntry", "Moment",
           "NotThereError", "Pattern", "Run", "SettingsError", "StateError", "Step", "TailraceError", "TimeAxis", "UnsupportedError", "Variable", "checkpoint",
           "decoded_messages", "find_index", "load_index", "manifest", "open"]
