#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Makes demo.html from the files, in GRIB2, NetCDF or Zarr, and figures of a demo: one page that needs nothing from outside of itself.

cdo decodes the fields; they are packed small (8 or 16 bit, differences, deflate, base64) into page.html and page.js.
"""
import array
import base64
import html
import itertools
import json
import math
import operator
import re
import struct
import sys
import zlib
from pathlib import Path

from formats import FORMATS, Unreadable, cdo, contents, for_cdo

HERE = Path(__file__).resolve().parent
MOST_POINTS = 120_000            # of a field in the page; larger grids are thinned out
BIN_SECONDS = 600                # of forecast time, of a point of the charts
RIM = 10                         # points that the model holds to its boundary values (dynamics.f90); the map leaves them out


# ---- fields ----------------------------------------------------------------------------------------------------

def read_fields(paths, operators, scratch):
    """The fields that cdo makes of the files, in order, as arrays of floats. EXTRA format: a header and a record."""
    cdo("-O", "-f", "ext", "-b", "F32L", *operators, *paths, scratch)
    data, fields, at = scratch.read_bytes(), [], 0
    scratch.unlink()
    while at < len(data):
        (length,) = struct.unpack_from("<i", data, at)
        at += length + 8
        (length,) = struct.unpack_from("<i", data, at)
        values = array.array("f")
        values.frombytes(data[at + 4:at + 4 + length])
        fields.append(values)
        at += length + 8
    return fields


def on_level(name, level):
    """Operators for a variable on one of its hybrid levels. cdo selects the surface pressure with it, by which NetCDF defines the
    levels; the second selection leaves it out."""
    return f"-sellevel,{level}", f"-select,name={name},level={level}"


def level_near(path, pressure, levels):
    """The hybrid level whose standard pressure is next to `pressure`, from the coefficients in the file where cdo finds
    them."""
    text = cdo("zaxisdes", path)
    found = re.search(r"vct\s*=\s*([-+.eE\d\s]+)", text)
    if not found:
        return max(1, math.ceil(0.43 * levels))       # this model's levels
    numbers = [float(word) for word in found.group(1).split()]
    half = len(numbers) // 2
    edges = [a + b * 101325.0 for a, b in zip(numbers[:half], numbers[half:])]
    middles = [0.5 * (low + high) for low, high in zip(edges, edges[1:])]
    return 1 + min(range(len(middles)), key=lambda k: abs(middles[k] - pressure))


class Packer:
    """Fields as unsigned numbers of 1 or 2 bytes, value = low + step * number. Neighbours differ little: their
    differences, with all high bytes before all low bytes, deflate to a fraction."""

    def __init__(self, nx, ny, rim, every, scratch):
        self.nx, self.rim, self.every, self.scratch = nx, rim, every, scratch
        self.rows, self.columns = range(rim, ny - rim, every), range(rim, nx - rim, every)

    def read(self, paths, low, step, width, *operators):
        """Fields that cdo brings to numbers; they are cut to whole ones here, which is faster than scaling here."""
        scaling = (f"-minc,{256 ** width - 1}", "-maxc,0", "-addc,0.5", f"-mulc,{1 / step!r}", f"-addc,{-low!r}")
        return self.pack(read_fields(paths, [*scaling, *operators], self.scratch), low, step, width)

    def pack(self, fields, low, step, width):
        high_bytes, low_bytes = [], []
        for field in fields:
            numbers = array.array("i", map(int, self.thin(field)))
            differences = array.array("i", map(operator.sub, numbers, itertools.chain([0], numbers)))
            if sys.byteorder == "big":
                differences.byteswap()
            raw = differences.tobytes()
            low_bytes.append(raw[0::differences.itemsize])
            high_bytes.append(raw[1::differences.itemsize])
        packed = zlib.compress(b"".join(high_bytes * (width == 2) + low_bytes), 6)
        return {"low": low, "step": step, "width": width, "frames": len(fields),
                "data": base64.b64encode(packed).decode()}

    def thin(self, field):
        return itertools.chain.from_iterable(field[j * self.nx + self.rim:(j + 1) * self.nx - self.rim:self.every]
                                             for j in self.rows)


def rain_between(files, scratch, step):
    """Square roots of what fell since the file before, in units of `step`, ready to be packed in 1 byte."""
    totals = read_fields(files, ["-select,name=tp"], scratch)
    root, none = math.sqrt, array.array("f", bytes(4 * len(totals[0])))
    return [array.array("f", [min(255.0, root(after - before) / step + 0.5) if after > before else 0.0
                              for before, after in zip(earlier, later)])
            for earlier, later in zip([none, *totals], totals)]


def rim_of(nx, ny):
    """The air that flows out meets the boundary values in these points: what the map would show there is no weather."""
    return RIM if min(nx, ny) >= 6 * RIM else 0


def gather_fields(out, terrain, summary):
    ending = FORMATS[summary["format"]].ending
    files, surface = sorted(out.glob(f"fc_*{ending}")), sorted(out.glob(f"surface_*{ending}"))
    if not files:
        return None
    with for_cdo([*files, *surface]) as readable:
        return fields_of(readable[:len(files)], readable[len(files):], terrain, summary, out / "page-scratch.ext")


def fields_of(files, surface, terrain, summary, scratch):
    nx, ny, levels = summary["size"]
    every = max(1, math.ceil(math.sqrt(nx * ny / MOST_POINTS)))
    rim = rim_of(nx, ny)
    packer = Packer(nx, ny, rim, every, scratch)
    aloft = level_near(files[0], 25000.0, levels)
    leads = [int(re.search(r"\+(\d+)", path.name).group(1)) for path in files]
    fields = {
        "u": packer.read(files, -102.0, 0.8, 1, *on_level("u", aloft)),
        "v": packer.read(files, -102.0, 0.8, 1, *on_level("v", aloft)),
        "t": packer.read(files, -70.0, 0.5, 1, "-addc,-273.15", *on_level("t", levels)),
        "rain": packer.pack(rain_between(files, scratch, 0.04), 0.0, 0.04, 1),
        "ground": packer.read([terrain], -200.0, 0.1, 2),
    }
    spacing = summary["surface_every_hours"]
    steps = [lead // spacing for lead in leads if lead % spacing == 0] if surface and spacing else []
    if len(steps) == len(leads):
        chosen = "-seltimestep," + ",".join(map(str, steps))
        fields["height"] = packer.read(surface[:1], 3500.0, 0.1, 2, chosen, "-selname,gh")
    for name, field in fields.items():
        if field["frames"] != (1 if name == "ground" else len(leads)):
            raise Unreadable(f"cdo finds {field['frames']} fields {name} in {len(leads)} files such as {files[0].name}, expected one in each")
    return {"nx": len(packer.columns), "ny": len(packer.rows), "every": every, "rim": rim, "leads": leads,
            "aloft": aloft, "levels": levels, "fields": fields, "grid": geometry(files[0], rim, every)}


def geometry(path, rim, every):
    """The rotated grid of a file without its rim, as cdo describes it."""
    found = dict(re.findall(r"^(\w+) *= *([-+.eE\d]+)\s*$", cdo("griddes", path), re.M))
    names = ("xfirst", "yfirst", "xinc", "yinc", "grid_north_pole_latitude", "grid_north_pole_longitude")
    missing = [name for name in names if name not in found]
    if missing:
        raise Unreadable(f"cdo finds no rotated grid in {path}: {', '.join(missing)} missing in its description")
    west, south, dx, dy, pole_latitude, pole_longitude = (float(found[name]) for name in names)
    return {"west": (west + rim * dx + 180) % 360 - 180, "south": south + rim * dy, "dx": dx * every, "dy": dy * every,
            "tilt": 90 - pole_latitude, "longitude": pole_longitude % 360 - 180}


# ---- charts ----------------------------------------------------------------------------------------------------

def bins(timings):
    """For each piece of forecast time the longest step in it, and the wall clock at its end."""
    step = timings["time_step"]
    per_bin = max(1, BIN_SECONDS // step)
    seconds = timings["step_seconds"]
    longest, clock, total = [], [], 0.0
    for start in range(0, len(seconds), per_bin):
        piece = seconds[start:start + per_bin]
        total += sum(piece)
        longest.append(float(f"{max(piece):.3g}"))
        clock.append(round(total, 4))
    return {"hours": per_bin * step / 3600, "longest": longest, "clock": clock, "total": timings["total_seconds"]}


# ---- the page --------------------------------------------------------------------------------------------------

def seconds_text(value):
    return "–" if value is None else f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.1f} ms"


TABLE = (
    ("Waiting for output, whole run", "blocked_seconds"),
    ("… while the forecast runs", "blocked_in_steps_seconds"),
    ("… at its end, until all is durable", "closing_seconds"),
    ("Last step computed after", "forecast_seconds"),
    ("Everything on storage after", "total_seconds"),
    ("Time to durable, median", "durable_median_seconds"),
    ("Time to durable, slowest step", "durable_max_seconds"),
    ("Step without output, median", "step_median_seconds"),
    ("Step with surface fields, median", "surface_step_median_seconds"),
    ("Step with all fields, median", "output_step_median_seconds"),
    ("Step with all fields, slowest", "output_step_max_seconds"),
)


def percent_text(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def table_html(summary):
    head = "".join(f"<th scope=col>{html.escape(run['title'])}</th>" for run in summary["runs"])
    body = ""
    for label, key in TABLE:
        silent = ("blocked_seconds", "blocked_in_steps_seconds", "closing_seconds")
        cells = ["–" if run["servers"] is None and key in silent else seconds_text(run[key])
                 for run in summary["runs"]]
        body += f"<tr><th scope=row>{label}</th>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr>\n"
    sizes = "".join("<td>–</td>" if run["servers"] is None else f"<td>{run['bytes'] / 1e6:.1f} MB</td>"
                    for run in summary["runs"])
    body += f"<tr><th scope=row>Bytes written</th>{sizes}</tr>\n"
    others = "".join(f"<td>{percent_text(run['others_share'])}</td>" for run in summary["runs"])
    body += f"<tr><th scope=row>Cores taken by other programs</th>{others}</tr>"
    return f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody>"


def tiles_html(summary):
    alone, inline, *served = summary["runs"]
    tiles = [("alone", "Nothing written", seconds_text(alone["total_seconds"]), "the forecast alone"),
             ("inline", "Everything on storage, inline", seconds_text(inline["total_seconds"]),
              f"last step after {seconds_text(inline['forecast_seconds'])}, "
              f"{seconds_text(inline['blocked_in_steps_seconds'])} of it waiting for output")]
    if served:
        first = served[0]
        tiles.append(("served", f"Everything on storage, {first['title']}", seconds_text(first["total_seconds"]),
                      f"last step after {seconds_text(first['forecast_seconds'])}, "
                      f"{seconds_text(first['blocked_in_steps_seconds'])} of it waiting for output"))
    tiles.append(("files", "Files", f"{inline['files']} identical",
                  f"{inline['bytes'] / 1e6:.0f} MB of {FORMATS[summary['format']].title}, every byte the same"))
    return "".join(f'<div class="tile {kind}"><div class=label>{html.escape(label)}</div>'
                   f"<div class=value>{html.escape(value)}</div><div class=note>{html.escape(note)}</div></div>"
                   for kind, label, value, note in tiles)


def contents_html(out, summary):
    """A row for each variable of a file of all fields and of that of the surface fields, as cdo finds them."""
    body = ""
    ending = FORMATS[summary["format"]].ending
    for pattern in (f"fc_*{ending}", f"surface_*{ending}"):
        files = sorted(out.glob(pattern))
        if not files:
            continue
        found = contents(files[0])
        steps = f"{len(found.steps)}, to {found.steps[-1].replace('T', ' ')[:16]}" if len(files) == 1 else \
            f"{len(found.steps)} in each of {len(files)} files"
        name = files[0].name + (f" … {files[-1].name}" if len(files) > 1 else "")
        for variable, levels in found.levels.items():
            cells = (found.units.get(variable, "–"), str(levels), steps)
            body += f"<tr><th scope=row>{html.escape(name)}</th><td>{html.escape(variable)}</td>"
            body += "".join(f"<td>{html.escape(text)}</td>" for text in cells) + "</tr>\n"
            name = ""
    heads = "".join(f"<th scope=col>{text}</th>" for text in ("File", "Variable", "Unit", "Levels", "Steps"))
    return f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"


def remarks_html(summary):
    if not summary["remarks"]:
        return ""
    return "<ul class=remarks>" + "".join(f"<li>{html.escape(text)}</li>" for text in summary["remarks"]) + "</ul>"


def make_page(out, terrain, summary, timings):
    """Writes out/demo.html and returns its path."""
    nx, ny, levels = summary["size"]
    fields = gather_fields(out, terrain, summary)
    shown = [run for run in summary["runs"] if run["servers"] is None or run["servers"] <= 1][:3]
    data = {"map": fields, "hours": summary["hours"], "every": summary["output_every_hours"],
            "series": [dict(bins(timings[run["name"]]), name=run["name"], title=run["title"]) for run in shown]}
    rate = summary["storage_rate"]
    storage = f"storage slowed to {rate}" if rate != "not slowed" else "storage at full speed"
    form = FORMATS[summary["format"]]
    texts = {
        "LEAD": f"{summary['hours']} hours over the North Atlantic and Europe on {nx} × {ny} points and {levels} "
                f"levels, computed by {summary['ranks']} ranks and written to {form.title} every "
                f"{summary['output_every_hours']} hours: once by the ranks themselves, and again through I/O servers. "
                f"Same program, same files; {storage}.",
        "TILES": tiles_html(summary), "REMARKS": remarks_html(summary), "TABLE": table_html(summary),
        "FORMAT": form.title, "ABOUT": html.escape(form.about), "CONTENTS": contents_html(out, summary),
        "RUNS": str(len(summary["runs"])), "RIM": str(rim_of(nx, ny)),
        "MACHINE": html.escape(f"{summary['machine']['cpu']}, {summary['machine']['cores']} cores · {summary['mpi']} · "
                               f"{summary['when']}"),
        "SCRIPT": (HERE / "page.js").read_text(encoding="utf-8"),
        "DATA": json.dumps(data, separators=(",", ":")),
    }
    page = (HERE / "page.html").read_text(encoding="utf-8")
    for name, text in texts.items():
        page = page.replace(f"@{name}@", text)
    path = out / "demo.html"
    path.write_text(page, encoding="utf-8")
    return path
