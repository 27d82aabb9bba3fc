# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Edits of one source by statements: what comes before a statement, instead of it and behind it."""

import re

from ..splice import Splice


class Edits:
    """New statements are texts; those with a label are written 'LABEL|TEXT'."""

    def __init__(self, source):
        self.source = source
        self._before = {}
        self._new = {}
        self._after = {}
        self._statements = {}

    def before(self, statement, lines):
        self._statements[id(statement)] = statement
        self._before.setdefault(id(statement), []).extend(lines)

    def after(self, statement, lines):
        self._statements[id(statement)] = statement
        self._after.setdefault(id(statement), []).extend(lines)

    def replace(self, statement, lines):
        self._statements[id(statement)] = statement
        self._new[id(statement)] = list(lines)

    def replaced(self, statement):
        return id(statement) in self._new

    def line(self, text):
        """Returns a new statement as a line of the source's form."""
        label = ""
        match = re.match(r"(\d+)\|", text)
        if match:
            label, text = match.group(1), text[match.end():]
        if self.source.fixed:
            return f"{label:5} {text}"
        return f"{label} {text}" if label else text

    def original(self, statement):
        text = statement.text
        if statement.construct:
            text = f"{statement.construct}: {text}"
        return [f"{statement.label}|{text}" if statement.label else text]

    def render(self):
        splice = Splice(self.source.file, self.source.lines)
        groups = {}
        for statement in self.source.statements:
            if statement.directive is None:
                groups.setdefault(statement.group, []).append(statement)
            else:
                self._put_alone(splice, statement)
        for group in groups.values():
            if len(group) == 1:
                self._put_alone(splice, group[0])
            elif any(id(s) in self._statements for s in group):
                lines = []
                for s in group:
                    lines += self._before.get(id(s), [])
                    lines += self._new.get(id(s), self.original(s))
                    lines += self._after.get(id(s), [])
                splice.replace(group[0].first, group[0].last, [self.line(t) for t in lines])
        if self.source.fixed:
            # What stands behind column 72 is a comment there; compiled with longer lines it must not come alive.
            splice.lines = [line if line[:1] in ("c", "C", "*", "!", "#", "d", "D") else _cut(line) for line in splice.lines]
        return splice.render()

    def _put_alone(self, splice, statement):
        key = id(statement)
        if key in self._before:
            splice.before(statement.first, [self.line(t) for t in self._before[key]])
        if key in self._new:
            splice.replace(statement.first, statement.last, [self.line(t) for t in self._new[key]])
        if key in self._after:
            splice.after(statement.last, [self.line(t) for t in self._after[key]])


def _cut(line):
    if "\t" in line[:6]:
        return line
    return line[:72]
