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
from .variables import Variable

__version__ = "0.1.0"


def open(pattern: str | _os.PathLike[str], base: _Any = None, *, member: int | None = None, calendar: str = "proleptic_gregorian",
         run: str | _uuid.UUID | None = None, leads: _Iterable[_Duration] | None = None) -> Run:
    """Opens the files of a stream. They need not be there yet: `Run.follow` waits for them.

    `pattern` names them as `tr_stream_create` did, or is one file. `base` (as "2026-03-01T00:00Z", or a datetime) and `member` are needed
    where the pattern asks for them. `run` passes over the files of other runs than this UUID. `leads` (as ["0h", "3h", ...], or seconds) are
    those that a complete run has; without them a gap is told where the spacing of the leads shows one. Raises SettingsError for a pattern or
    time that is not valid, FormatError for a damaged index."""
    return Run(pattern, base, member, calendar, run, leads)


__all__ = ["Checkpoint", "Context", "FormatError", "Index", "IndexField", "IndexHeader", "IndexStep", "Lead", "ManifestEntry", "Moment",
           "NotThereError", "Pattern", "Run", "SettingsError", "StateError", "Step", "TailraceError", "UnsupportedError", "Variable", "checkpoint",
           "decoded_messages", "find_index", "load_index", "manifest", "open"]
