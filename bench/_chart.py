# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Line charts with logarithmic axes as SVG, and pages of them with tables, which every browser shows: nothing has to be installed."""
import html
import math
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 460, 80, 190, 50, 60
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98", "#b08900", "#7a4988", "#4f8a8b", "#8a4f4f", "#555555")


class Scale:
    """Takes values to places along an axis."""

    def __init__(self, values, begin, end, base):
        self.base = base
        self.low, self.high = math.log(min(values), base), math.log(max(values), base)
        if base == 10:
            self.low, self.high = math.floor(self.low), math.ceil(self.high)
        if self.high - self.low < 1e-9:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.begin, self.end = begin, end

    def __call__(self, value):
        return self.begin + (math.log(value, self.base) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def decades(self):
        return [10.0 ** power for power in range(math.ceil(self.low), math.floor(self.high) + 1)]


def text(x, y, words, anchor="middle", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {more}>{html.escape(words)}</text>'


def line(x0, y0, x1, y1, colour="#dddddd"):
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}"/>'


def axes(title, x_title, y_title, ticks, x_scale, y_scale):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [text(LEFT, 24, title, "start", 15), text((LEFT + right) / 2, HEIGHT - 14, x_title),
             text(18, (TOP + bottom) / 2, y_title, more=f'transform="rotate(-90 18 {(TOP + bottom) / 2:.1f})"')]
    for value in y_scale.decades():
        parts += [line(LEFT, y_scale(value), right, y_scale(value)), text(LEFT - 8, y_scale(value) + 4, f"{value:g}", "end")]
    for value, words in ticks:
        parts += [line(x_scale(value), TOP, x_scale(value), bottom), text(x_scale(value), bottom + 18, words)]
    return parts


def series_of(number, name, points, x_scale, y_scale):
    colour = COLOURS[number % len(COLOURS)]
    places = [(x_scale(x), y_scale(y)) for x, y in points]
    parts = [f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' +
             " ".join(f"{x:.1f},{y:.1f}" for x, y in places) + '"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
    y = TOP + 12 + 20 * number
    return parts + [f'<rect x="{WIDTH - RIGHT + 16}" y="{y - 9}" width="14" height="10" fill="{colour}"/>',
                    text(WIDTH - RIGHT + 36, y, name, "start")]


def chart(title, x_title, y_title, ticks, series):
    """Returns an SVG. `ticks` are (value, words) of the horizontal axis; `series` maps a name to points (x, y), both above 0."""
    points = [point for each in series.values() for point in each]
    x_scale = Scale([x for x, _ in points], LEFT, WIDTH - RIGHT, 2)
    y_scale = Scale([y for _, y in points], HEIGHT - BOTTOM, TOP, 10)
    parts = axes(title, x_title, y_title, ticks, x_scale, y_scale)
    for number, (name, each) in enumerate(series.items()):
        parts += series_of(number, name, sorted(each), x_scale, y_scale)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def write_chart(path, *drawn):
    """Writes a chart(*drawn) to a file of its own."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(chart(*drawn), encoding="utf-8")


def table(head, rows):
    """Returns an HTML table. Each row is a list of texts, of which the first is a name and the others are numbers."""
    def line_of(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    return "<table>" + line_of(head, "th") + "".join(line_of(row, "td") for row in rows) + "</table>\n"


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: sans-serif; margin: 2em auto; max-width: 1200px; color: #222; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ padding: 0.2em 0.8em; border-bottom: 1px solid #ddd; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1em; }}
</style></head><body><h1>{title}</h1>
{body}</body></html>
"""


def section(heading, words, head, rows, charts):
    """Returns a section of a page: a heading, a paragraph, a table and charts."""
    return (f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(words)}</p>\n" + table(head, rows) +
            '<div class="charts">\n' + "".join(charts) + "</div>\n")


def write_page(path, title, sections):
    """Writes a page that holds everything it shows."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(PAGE.format(title=html.escape(title), body="".join(sections)), encoding="utf-8")
