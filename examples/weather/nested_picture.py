# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Makes nested.svg of a nested forecast: the 500 hPa surface of the forecast around it, that of the nested one laid over it at the same time, and
how far the two are apart near the border, hour by hour. cdo decodes the fields; Python's own library draws.

nested.py calls this. By hand, where its files lie:  python3 examples/weather/nested_picture.py out/nested
The picture of README.md is `rsvg-convert -w 900 nested.svg -o nested.png` after nested.py with its defaults.
"""
import base64
import html
import math
import re
import struct
import sys
import zlib
from pathlib import Path

from formats import cdo
from make_page import RIM, geometry, read_fields

MARGIN, GAP, HEIGHT, FOOT = 24, 28, 440, 310      # pixels
AROUND = 4.0                                      # degrees of the outer forecast that the right map shows around the nested one
BAND = 60                                         # m between two lines, and of a colour
STOPS = ((4860, 92, 76, 148), (5100, 76, 116, 184), (5340, 128, 184, 206), (5520, 214, 228, 208), (5700, 240, 208, 140), (5880, 222, 140, 92))
RINGS = (1, 4, 7, 10, 20, 40)                     # cells from the border
COLOURS = ("#1b3a4b", "#0f7285", "#3a9d6a", "#b08900", "#c8553d", "#7a4988")
OUTER_LINE, INNER_LINE, FRAME = "#4b5a63", "#7c1f3f", "#c2502e"


class Field:
    """Values on a rotated grid. Positions are its degrees."""

    def __init__(self, values, grid, nx, ny):
        self.values, self.nx, self.ny = values, nx, ny
        self.west, self.south, self.dx, self.dy = grid["west"], grid["south"], grid["dx"], grid["dy"]
        self.east, self.north = self.west + (nx - 1) * self.dx, self.south + (ny - 1) * self.dy

    def covers(self, x, y):
        return self.west <= x <= self.east and self.south <= y <= self.north

    def at(self, x, y):
        x, y = (x - self.west) / self.dx, (y - self.south) / self.dy
        i, j = max(0, min(self.nx - 2, int(x))), max(0, min(self.ny - 2, int(y)))
        a, b, n, v = max(0.0, min(1.0, x - i)), max(0.0, min(1.0, y - j)), j * self.nx + i, self.values
        return (v[n] * (1 - a) + v[n + 1] * a) * (1 - b) + (v[n + self.nx] * (1 - a) + v[n + self.nx + 1] * a) * b

    def lines(self, level):
        """Pieces ((x, y), (x, y)) of the line where the field has this value: marching squares."""
        v, nx, degrees = self.values, self.nx, lambda i, j: (self.west + i * self.dx, self.south + j * self.dy)
        for j in range(self.ny - 1):
            for i in range(nx - 1):
                n = j * nx + i
                a, b, c, d = v[n] - level, v[n + 1] - level, v[n + nx + 1] - level, v[n + nx] - level
                if (a > 0) == (b > 0) == (c > 0) == (d > 0):
                    continue
                ends = []
                if (a > 0) != (b > 0):
                    ends.append(degrees(i + a / (a - b), j))
                if (b > 0) != (c > 0):
                    ends.append(degrees(i + 1, j + b / (b - c)))
                if (c > 0) != (d > 0):
                    ends.append(degrees(i + d / (d - c), j + 1))
                if (d > 0) != (a > 0):
                    ends.append(degrees(i, j + a / (a - d)))
                yield from zip(ends[0::2], ends[1::2])


def colour(value):
    """Of the band that holds the value."""
    value = BAND * math.floor(value / BAND) + BAND / 2
    if value <= STOPS[0][0]:
        return bytes(STOPS[0][1:])
    for low, high in zip(STOPS, STOPS[1:]):
        if value <= high[0]:
            weight = (value - low[0]) / (high[0] - low[0])
            return bytes(round(a + weight * (b - a)) for a, b in zip(low[1:], high[1:]))
    return bytes(STOPS[-1][1:])


def png(rows, width):
    """An image of rows of red, green, blue."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def text(x, y, words, anchor="start", size=13, fill="#16222b", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" {more}>{html.escape(words)}</text>'


class Map:
    """A piece of the rotated grid at a place of the picture."""

    def __init__(self, left, top, height, west, south, east, north):
        self.left, self.top, self.height = left, top, height
        self.west, self.south, self.east, self.north = west, south, east, north
        self.scale = height / (north - south)
        self.width = round((east - west) * self.scale)

    def place(self, x, y):
        return self.left + (x - self.west) * self.scale, self.top + (self.north - y) * self.scale

    def shades(self, field_at):
        rows = []
        for row in range(self.height):
            y = self.north - (row + 0.5) / self.scale
            rows.append(b"".join(colour(field_at(self.west + (column + 0.5) / self.scale, y)) for column in range(self.width)))
        data = base64.b64encode(png(rows, self.width)).decode()
        return f'<image x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" href="data:image/png;base64,{data}"/>'

    def line(self, pieces, stroke, width, shown=lambda x, y: True):
        path = []
        for (x0, y0), (x1, y1) in pieces:
            inside = self.west < min(x0, x1) and max(x0, x1) < self.east and self.south < min(y0, y1) and max(y0, y1) < self.north
            if inside and shown((x0 + x1) / 2, (y0 + y1) / 2):
                (u0, v0), (u1, v1) = self.place(x0, y0), self.place(x1, y1)
                path.append(f"M{u0:.1f} {v0:.1f}L{u1:.1f} {v1:.1f}")
        return f'<path d="{"".join(path)}" fill="none" stroke="{stroke}" stroke-width="{width}" stroke-linecap="round"/>'

    def box(self, field, inset, stroke, width, dashes=""):
        """The edge of a field, or a line so many cells inside of it."""
        (left, bottom), (right, top) = (self.place(field.west + (inset - 0.5) * field.dx, field.south + (inset - 0.5) * field.dy),
                                        self.place(field.east - (inset - 0.5) * field.dx, field.north - (inset - 0.5) * field.dy))
        return (f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" fill="none" stroke="{stroke}" '
                f'stroke-width="{width}" stroke-dasharray="{dashes}"/>')

    def edge(self):
        return f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" fill="none" stroke="#16222b"/>'


# ---- what there is ---------------------------------------------------------------------------------------------

class Forecasts:
    """The fields of a directory that nested.py has filled."""

    def __init__(self, out, run):
        self.out, self.scratch = out, out / "picture-scratch.ext"
        outer, boundaries = sorted((out / "outer").glob("outer_*.grib2")), sorted((out / "boundaries").glob("bd_*.grib2"))
        surface = next((out / run).glob("surface_*.grib2"))
        self.leads = [int(re.search(r"\+(\d+)", path.name).group(1)) for path in boundaries]
        self.coarse = self.grid_of(outer[0])
        self.fine = self.grid_of(boundaries[0])
        self.edges = self.read(boundaries, self.fine, "gh")
        self.inner = self.read([surface], self.fine, "gh")          # each hour, from the first
        self.hours = range(1, min(len(self.inner), self.leads[-1]) + 1)
        self.shown = max(lead for lead in self.leads if lead in self.hours)
        self.outer = self.read(outer, self.coarse, "gh")[self.leads.index(self.shown)]
        self.coasts = [self.read([out / name], grid, "orog")[0]
                       for name, grid in (("terrain.grib2", self.coarse), ("nested_terrain.grib2", self.fine))]

    @staticmethod
    def grid_of(path):
        sizes = dict(re.findall(r"^([xy]size) *= *(\d+)", cdo("griddes", path), re.M))
        return geometry(path, 0, 1), int(sizes["xsize"]), int(sizes["ysize"])

    def read(self, paths, grid, name):
        return [Field(values, *grid) for values in read_fields(paths, [f"-select,name={name}"], self.scratch)]

    def boundary(self, hour):
        """Values between two files are on a line, as between=linear has them."""
        after = next(number for number, lead in enumerate(self.leads) if lead >= hour)
        if self.leads[after] == hour:
            return self.edges[after].values
        weight = (hour - self.leads[after - 1]) / (self.leads[after] - self.leads[after - 1])
        return [(1 - weight) * a + weight * b for a, b in zip(self.edges[after - 1].values, self.edges[after].values)]

    def apart(self):
        """For each ring the root mean square of nested less boundary, hour by hour."""
        _, nx, ny = self.fine
        rings = {ring: [j * nx + i for j in range(ny) for i in range(nx) if min(i, j, nx - 1 - i, ny - 1 - j) + 1 == ring]
                 for ring in RINGS if 2 * ring < min(nx, ny)}
        found = {ring: [] for ring in rings}
        for hour in self.hours:
            boundary, inner = self.boundary(hour), self.inner[hour - 1].values
            for ring, numbers in rings.items():
                found[ring].append(math.sqrt(sum((inner[n] - boundary[n]) ** 2 for n in numbers) / len(numbers)))
        return found


# ---- the picture -----------------------------------------------------------------------------------------------

def maps(forecasts):
    outer, inner = forecasts.outer, forecasts.inner[forecasts.shown - 1]
    left = Map(MARGIN, 64, HEIGHT, outer.west, outer.south, outer.east, outer.north)
    right = Map(MARGIN + left.width + GAP, 64, HEIGHT, inner.west - AROUND, inner.south - AROUND, inner.east + AROUND, inner.north + AROUND)
    levels = range(4800, 6121, BAND)
    outside = lambda x, y: not inner.covers(x, y)
    parts = [left.shades(outer.at), left.line(forecasts.coasts[0].lines(1), "#16222b", 0.6)]
    parts += [left.line(outer.lines(level), OUTER_LINE, 1.8 if level == 5520 else 0.9) for level in levels]
    parts += [left.box(inner, 0, FRAME, 2.2), left.edge()]
    parts.append(right.shades(lambda x, y: inner.at(x, y) if inner.covers(x, y) else outer.at(x, y)))
    parts.append(right.line(forecasts.coasts[1].lines(1), "#16222b", 0.6))
    parts.append(right.line(forecasts.coasts[0].lines(1), "#16222b", 0.6, outside))
    for level in levels:
        thick = 1.8 if level == 5520 else 1.0
        parts += [right.line(outer.lines(level), OUTER_LINE, thick, outside), right.line(inner.lines(level), INNER_LINE, thick)]
    parts += [right.box(inner, 0, FRAME, 2.2), right.box(inner, RIM, FRAME, 1.4, "6 4"), right.edge()]
    parts += [text(left.left, 54, "The forecast around it, and the frame of the nested one", size=14),
              text(right.left, 54, f"The nested forecast over it, held between frame and dashes ({RIM} cells)", size=14)]
    for at, stroke, words in ((right.left, INNER_LINE, "nested"), (right.left + 100, OUTER_LINE, "around it")):
        parts += [f'<path d="M{at} {64 + HEIGHT + 18}h24" stroke="{stroke}" stroke-width="2"/>', text(at + 32, 64 + HEIGHT + 22, words)]
    return parts, right.left + right.width + MARGIN


def chart(forecasts, width):
    apart = forecasts.apart()
    top, left, right = 64 + HEIGHT + 76, MARGIN + 46, width - 200
    bottom = top + FOOT - 120
    most = max(max(values) for values in apart.values())
    step = next(each for each in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if most / each <= 6)
    high = step * math.ceil(most / step)
    hours = forecasts.hours
    x = lambda hour: left + (hour - hours[0]) / max(1, hours[-1] - hours[0]) * (right - left)
    y = lambda metres: bottom - metres / high * (bottom - top)
    parts = [text(MARGIN, top - 22, "Nested less boundary, by distance from the border: root mean square in m", size=14)]
    for number in range(round(high / step) + 1):
        parts += [f'<path d="M{left} {y(number * step):.1f}H{right}" stroke="#dde2e1"/>', text(left - 8, y(number * step) + 4, f"{number * step:g}", "end")]
    every = 3 if len(hours) <= 36 else 6
    parts += [text(x(hour), bottom + 20, f"{hour} h", "middle") for hour in hours if hour % every == 0]
    labels = sorted(((y(values[-1]), ring) for ring, values in apart.items()), reverse=True)
    last = bottom + 18
    for at, ring in labels:
        last = min(at + 4, last - 16)
        stroke = COLOURS[RINGS.index(ring)]
        points = " ".join(f"{x(hour):.1f},{y(metres):.1f}" for hour, metres in zip(hours, apart[ring]))
        words = "cell 1, at the border" if ring == 1 else f"cell {ring}" + (", the last that is held" if ring == RIM else "")
        parts += [f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="2"/>', text(right + 12, last, words, fill=stroke)]
    return parts


def make_picture(out, run="ahead"):
    """Writes out/nested.svg from the forecasts in `out` and returns its path."""
    forecasts = Forecasts(out, run)
    parts, width = maps(forecasts)
    height = 64 + HEIGHT + FOOT
    title = f"A nested forecast: height of 500 hPa after {forecasts.shown} hours, a line each {BAND} m"
    parts += chart(forecasts, width)
    path = out / "nested.svg"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="system-ui, \'DejaVu Sans\', sans-serif">\n'
                    f'<rect width="{width}" height="{height}" fill="white"/>\n' + text(MARGIN, 28, title, size=18, more='font-weight="600"') + "\n" +
                    "\n".join(parts) + "\n</svg>\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(make_picture(Path(sys.argv[1])))
