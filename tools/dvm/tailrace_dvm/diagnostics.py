# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Errors with file, line, column and a caret."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A place in a source; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1


class TranslationError(Exception):
    """Says what is wrong at a place of the source, and how to go on."""

    def __init__(self, place, message, hint=""):
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint

    def text(self, lines=None):
        """Returns the error as compilers print it. `lines`: the source, for the line with the caret."""
        out = [f"{self.place.file}:{self.place.line}:{self.place.column}: error: {self.message}"]
        if lines is not None and 1 <= self.place.line <= len(lines):
            line = lines[self.place.line - 1].rstrip("\r\n")
            # Tabs in front of the caret stay tabs, so that the caret stands below its column.
            ahead = "".join("\t" if c == "\t" else " " for c in line[: self.place.column - 1])
            out += ["  " + line, "  " + ahead + "^"]
        if self.hint:
            out.append("  " + self.hint)
        return "\n".join(out)
