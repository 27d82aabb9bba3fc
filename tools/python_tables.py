# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Writes python/src/tailrace/tables.py, the tables that the library and the Python package share, from the library's sources. `./dev fmt` writes it,
`./dev lint` checks it. The list of names in docs/formats/weather-names.md is checked, too."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES, CALENDAR, CALENDARS = "src/formats/cf/names.cpp", "src/ground/base/calendar.cpp", "src/ground/base/calendar.hpp"
WRITTEN, PAGE = "python/src/tailrace/tables.py", "docs/formats/weather-names.md"


def text_of(name):
    return (ROOT / name).read_text()


def quantities():
    return re.findall(r'Quantity\{"([^"]*)", "([^"]*)", "([^"]*)"\}', text_of(NAMES))


def level_types():
    return re.findall(r'LevelType\{"([^"]*)", "([^"]*)", "([^"]*)", "([^"]*)", "([^"]*)"\}', text_of(NAMES))


def calendars():
    """Returns the enumerators in the order of their numbers, the name of each, and pairs of an accepted name and the enumerator."""
    numbered = re.search(r"enum class Calendar : std::int32_t \{ ([^}]*) \}", text_of(CALENDARS))[1].split(", ")
    source = text_of(CALENDAR)
    names = dict(re.findall(r'case Calendar::(\w+):\s*return "([^"]*)";', source[source.index("name_of(Calendar"):]))
    return numbered, names, re.findall(r'\{"([^"]*)", Calendar::(\w+)\}', source[source.index("parse_calendar("):])


def tables():
    numbered, names, accepted = calendars()
    lines = ["# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause",
             '"""Tables that the library and this package share. Written by `./dev fmt` from the library\'s sources (tools/python_tables.py): change those."""',
             "from __future__ import annotations", "",
             f"# {NAMES}: the standard name and the units of CF, by the short name of GRIB or of CMIP.",
             "QUANTITIES = {", *(f'    "{name}": ("{standard}", "{units}"),' for name, standard, units in quantities()), "}", "",
             f"# {NAMES}: dimension, standard name, units and positive direction of the coordinate, by ecCodes' typeOfLevel.",
             "LEVELS = {", *(f'    "{name}": ({", ".join(f"{chr(34)}{each}{chr(34)}" for each in rest)}),' for name, *rest in level_types()), "}", "",
             f"# {CALENDARS}: calendars by their numbers in an index; {CALENDAR}: the number by each name that is accepted.",
             "CALENDARS = (" + ", ".join(f'"{names[each]}"' for each in numbered) + ")",
             "CALENDAR_NUMBERS = {", *(f'    "{name}": {numbered.index(calendar)},' for name, calendar in accepted), "}"]
    return "\n".join(lines) + "\n"


def problems(write=False):
    """Returns a line for each table that differs from the library's. With `write` the package's is written instead."""
    if len(quantities()) < 50 or len(level_types()) < 10 or len(calendars()[2]) < 11:
        return ["tools/python_tables.py does not find the rows of the library's tables any more: mend it"]
    found = []
    listed = [tuple(row) for row in re.findall(r"^\| `(.*)` \| `(.*)` \| `(.*)` \|$", text_of(PAGE), re.M)]
    if listed[-len(quantities()):] != quantities():
        found.append(f"{PAGE}: the names are not those of {NAMES}")
    path = ROOT / WRITTEN
    if not path.exists() or path.read_text() != tables():
        if write:
            path.write_text(tables())
        else:
            found.append(f"{WRITTEN}: not what the library's tables are (./dev fmt)")
    return found


if __name__ == "__main__":
    print("\n".join(problems(write=True)))
