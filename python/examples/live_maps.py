#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Draws a map of each step of a run that is still writing: a PNG as soon as the step is durable.

  live_maps.py 'fc_{base:%Y%m%d%H}+{lead:03h}.grib2' t --base 2026-03-01T00:00Z --level 850 --timeout 20min
  live_maps.py surface_2026030100.grib2 tp --out maps
"""
import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import tailrace as tr  # noqa: E402


def draw(step, grid, name, level, path):
    """Draws one map into a file. Renames it into place, so that a page with the map never loads half of one."""
    values = step.read(name, level) if level is not None else step[name]
    figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
    if values.ndim == 1 and "lat" in grid.coords and grid["lat"].dims == grid["lon"].dims:
        image = axes.scatter(grid["lon"], grid["lat"], c=values, s=2)
    elif values.ndim == 1:
        image = axes.scatter(range(len(values)), values, c=values, s=2)
    elif "lat" in grid.coords and "lon" in grid.coords:
        image = axes.pcolormesh(grid["lon"], grid["lat"], values, shading="nearest")
    else:
        image = axes.imshow(values)
    figure.colorbar(image, label=f"{grid.attrs.get('standard_name', name)} [{grid.attrs.get('units', '')}]")
    axes.set_title(f"{name}{'' if level is None else f' at {level:g}'}, {step.valid:%d %b %Y %H:%M} UTC, +{step.lead}")
    unfinished = path.with_suffix(".new.png")
    figure.savefig(unfinished, dpi=100)
    plt.close(figure)
    unfinished.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", help="the stream's file pattern, or one file")
    parser.add_argument("field")
    parser.add_argument("--base", help="the base time, if the pattern has it")
    parser.add_argument("--member", type=int)
    parser.add_argument("--level", type=float, help="one of several levels, by its value")
    parser.add_argument("--timeout", default="20min", help="how long to wait for the next step (default: 20min)")
    parser.add_argument("--out", type=Path, default=Path("maps"), help="directory of the maps (default: maps)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    run = tr.open(args.pattern, base=args.base, member=args.member)
    grid = None
    for step in run.follow(timeout=args.timeout):
        if args.field not in step:
            continue
        if grid is None:
            grid = run.to_xarray()[args.field].isel(lead=0)
            if step[args.field].ndim > 2 and args.level is None:
                sys.exit(f"{args.field} has the levels {', '.join(f'{level:g}' for level in run.fields[args.field].levels)}: give --level")
        minutes, seconds = divmod(round(step.lead.total_seconds()), 60)
        path = args.out / f"{args.field}+{minutes:05d}min{f'{seconds:02d}s' if seconds else ''}.png"
        draw(step, grid, args.field, args.level, path)
        print(path, flush=True)
    for line in run.missing:
        print("missing:", line, file=sys.stderr)
    return 0 if run.complete else 1


if __name__ == "__main__":
    sys.exit(main())
