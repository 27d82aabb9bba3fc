#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Draws a chart of each step of the sample forecast while it runs: the temperature on the lowest level, and the rain since the step before.

Run it in the directory in which the forecast leaves its files, before or after the forecast has begun.
"""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import tailrace as tr  # noqa: E402


def chart(temperature, rain, title):
    """Draws two maps into a PNG named after the title."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for each, values, label in zip(axes, (temperature, rain), ("temperature [K]", "rain [kg m-2]")):
        figure.colorbar(each.imshow(values, origin="lower"), ax=each, label=label)
    figure.suptitle(title)
    figure.savefig(f"{title}.png")
    plt.close(figure)


run = tr.open("fc_{base:%Y%m%d%H}+{lead:03h}.grib2", base="2026-03-01T00:00Z")
rain = 0.0
for step in run.follow(timeout="20min"):           # each step once durable, while the model still runs
    t, total = step["t"], step["tp"]               # numpy (level, y, x) and (y, x), decoded on demand
    chart(t[-1], total - rain, title=f"{step.valid:%d %b %H UTC}, +{step.lead}")
    rain = total
assert run.complete, run.missing                   # e.g. ['+045h: not written', '+048h: not committed']
ds = run.to_xarray()                               # lazy (lead, level, y, x), CF names and units
print(ds)
