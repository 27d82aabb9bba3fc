# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Edits spliced into the original lines. Lines that no edit touches stay as they were, and marker lines
(`# 12 "file"`) tell the compiler which original line follows."""


class Splice:
    """Collects edits of whole lines. Lines count from 1."""

    def __init__(self, file, lines, marker="# {line} \"{file}\""):
        self.file = file
        self.lines = [line.rstrip("\r\n") for line in lines]
        self.marker = marker
        self._replaced = {}  # first line: (last line, new lines)
        self._before = {}
        self._after = {}

    def replace(self, first, last, new):
        """Puts `new`, a list of lines, in place of the lines first to last."""
        self._replaced[first] = (last, list(new))

    def before(self, line, new):
        """Puts lines in front of a line, behind those that were put there earlier."""
        self._before.setdefault(line, []).extend(new)

    def after(self, line, new):
        """Puts lines behind a line, behind those that were put there earlier."""
        self._after.setdefault(line, []).extend(new)

    def _mark(self, line):
        return self.marker.format(line=line, file=self.file.replace("\\", "\\\\").replace('"', '\\"'))

    def render(self):
        """Returns the text with all edits. New lines bear the number of the line that they stand for."""
        out = [self._mark(1)]
        at = 1          # the number that the compiler gives to the next line
        line = 1

        def put(text, number):
            nonlocal at
            if at != number:
                out.append(self._mark(number))
            out.append(text)
            at = number + 1

        while line <= len(self.lines):
            for text in self._before.get(line, ()):
                put(text, line)
            if line in self._replaced:
                last, new = self._replaced[line]
                for text in new:
                    put(text, line)
                for number in range(line, last + 1):
                    for text in self._after.get(number, ()):
                        put(text, number)
                line = last + 1
                continue
            put(self.lines[line - 1], line)
            for text in self._after.get(line, ()):
                put(text, line)
            line += 1
        return "\n".join(out) + "\n"
