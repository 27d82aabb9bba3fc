# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The list of finished files, `manifest.jsonl` (docs/formats/manifest.md)."""
from __future__ import annotations

import json
import math
import os
import uuid
from dataclasses import dataclass
from typing import Any

import xxhash

from .binary import open_regular
from .errors import FormatError
from .time_axis import find_time_unit

LONGEST_LINE = 64 << 20


@dataclass(frozen=True)
class ManifestEntry:
    """One finished file. `path` is relative to the manifest's directory, `leads` are in `lead_unit`. Streams with
    time=model have `times` in `time_units` in place of leads, and an empty `base` if they count from no date."""

    path: str
    size: int
    xxh3_128: str
    run: uuid.UUID
    base: str
    leads: tuple[int, ...]
    records: int
    lead_unit: str = "s"
    times: tuple[float, ...] = ()
    time_units: str = ""


def manifest(path: str | os.PathLike[str]) -> dict[str, ManifestEntry]:
    """Returns the finished files of a directory, or of the `manifest.jsonl` at `path`, by their paths. Of several
    lines about one path the last counts. A last line that a crash has torn is ignored; other damage raises
    FormatError."""
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "manifest.jsonl")
    lines: list[bytes] = []
    with open(open_regular(path), "rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise FormatError(f"{path}: no line ends in {LONGEST_LINE >> 20} MiB: this is no manifest, or a damaged one")
            lines.append(line)
    entries: dict[str, ManifestEntry] = {}
    parsed = [_parsed(line) for line in lines]
    while parsed and parsed[-1] is _TORN:
        parsed.pop()
    for number, content in enumerate(parsed, 1):
        entry = _entry(content, f"{path}, line {number}")
        entries[entry.path] = entry
    return entries


_TORN = object()


def _parsed(line: bytes) -> Any:
    """Returns the JSON of a line, or _TORN for a line that a crash may have left."""
    try:
        return json.loads(line) if line.endswith(b"\n") else _TORN
    except (ValueError, RecursionError):
        return _TORN


def _entry(content: Any, where: str) -> ManifestEntry:
    try:
        is_model = "times" in content
        # Only times of a model may count from no date.
        texts = [content["path"], content["xxh3_128"], content.get("base", "") if is_model else content["base"], content.get("lead_unit", "s"),
                 content["time_units"] if is_model else ""]
        numbers = [content["size"], content["records"], *([] if is_model else content["leads"])]
        times = content["times"] if is_model else []
        if not all(isinstance(each, str) for each in texts) or not all(type(each) is int for each in numbers) or \
                not all(type(each) in (int, float) and math.isfinite(each) for each in times):
            raise ValueError("a member has another type")
        if find_time_unit(texts[3]) is None:
            raise ValueError(f"lead_unit is {texts[3][:80]!r}")
        return ManifestEntry(texts[0], numbers[0], texts[1], uuid.UUID(content["run"]), texts[2], tuple(numbers[2:]), numbers[1], texts[3],
                             tuple(map(float, times)), texts[4])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError(f"{where}: this is no entry of a manifest ({error})") from error


def digest(path: str) -> str:
    """Returns the XXH3-128 of a file's bytes, as in the manifest."""
    state = xxhash.xxh3_128()
    with open(open_regular(path), "rb") as file:
        while piece := file.read(4 << 20):
            state.update(piece)
    return state.hexdigest()
