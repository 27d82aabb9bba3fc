# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""All formats that streams write, by name."""
from __future__ import annotations

from .errors import UnsupportedError
from .index import IndexHeader
from .netcdf4 import Netcdf4Source
from .source import ClassicSource, GribSource, Source
from .stores import ZarrSource


def source_of(path: str, header: IndexHeader) -> Source:
    """Returns the reader for a file's format. Raises UnsupportedError for a format that this package does not
    know: a program's own, or one of Tailrace's that this version lacks."""
    if header.format in ("grib2", "grib1"):
        return GribSource(path, header)
    if header.format == "raw":
        return Source(path, header)
    if header.format in ("cdf5", "cdf2", "cdf1"):
        return ClassicSource(path, header)
    if header.format == "netcdf4":
        return Netcdf4Source(path, header)
    if header.format == "zarr":
        return ZarrSource(path, header)
    raise UnsupportedError(f'{path}: this package does not read the format "{header.format}": it is a program\'s own, which only '
                           "that program can read, or one of Tailrace's that this version lacks: try a newer one")
