# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A source as logical statements and directives with their lines. fparser2's reader joins continued lines of both
forms; only the lines of directives, which it takes for comments, are read here."""

import logging
import re
from dataclasses import dataclass

from fparser.common.readfortran import FortranStringReader
from fparser.common.sourceinfo import FortranFormat

from ..diagnostics import Place, TranslationError
from ..directives import DirectiveText
from .text import masked, closing

logging.getLogger("fparser").addHandler(logging.NullHandler())
logging.getLogger("fparser").propagate = False

_FREE_SENTINEL = re.compile(r"\s*!dvm\$", re.I)
_FIXED_SENTINEL = re.compile(r"[c*d!]dvm\$|\s*!dvm\$", re.I)
_FIXED_SUFFIXES = (".f", ".for", ".ftn", ".fdv", ".f77", ".fpp")


@dataclass
class Statement:
    first: int             # physical lines
    last: int
    text: str
    label: str = ""
    construct: str = ""
    group: int = 0         # statements with the same number share their lines
    directive: object = None
    file: str = ""

    def word(self):
        match = re.match(r"\s*([A-Za-z_]\w*)", self.text)
        return match.group(1).lower() if match else ""


class Source:
    """`statements` are in the order of the source, directives (still as DirectiveText) among them."""

    def __init__(self, file, text, fixed=None):
        self.file = file
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        self.fixed = file.lower().endswith(_FIXED_SUFFIXES) if fixed is None else fixed
        self.statements = self._merge(self._read_statements(), self._read_directives())

    def place(self, line, column=1):
        return Place(self.file, line, column)

    def place_of(self, statement, name=""):
        """Returns where a name stands in a statement: the first place, or the statement's begin."""
        if name:
            pattern = re.compile(r"(?<!\w)" + re.escape(name) + r"(?!\w)", re.I)
            for line in range(statement.first, statement.last + 1):
                match = pattern.search(masked(self.lines[line - 1]))
                if match:
                    return self.place(line, match.start() + 1)
        line = self.lines[statement.first - 1] if statement.first <= len(self.lines) else ""
        ahead = re.match(r"\s*\d*\s*" if not self.fixed else r".{0,5}\s*", line)
        return self.place(statement.first, min(ahead.end() + 1, max(len(line), 1)))

    def _prepared(self):
        """Returns the lines for the reader: a tab in front of a fixed statement moves it to column 7."""
        if not self.fixed:
            return [line if not line.lstrip().startswith("#") else "" for line in self.lines]
        out = []
        for line in self.lines:
            ahead = re.match(r"([ \d]{0,5})\t([1-9])?", line)
            if ahead:
                field = f"{ahead.group(1):5}" + (ahead.group(2) or " ")
                line = field + line[ahead.end():]
            line = line.expandtabs(1)
            if line[:1] in "cC*dD#" and line[:1]:
                line = ""
            elif not line.lstrip().startswith("!"):
                line = line[:72]
            out.append(line)
        return out

    def _read_statements(self):
        found = []
        reader = None
        try:
            reader = FortranStringReader("\n".join(self._prepared()) + "\n", include_dirs=["/nonexistent"],
                                         ignore_comments=True)
            reader.set_format(FortranFormat(not self.fixed, False))
            for item in reader:
                text = getattr(item, "line", None)
                if text is None:
                    continue
                found.append((item.span, str(item.label or ""), item.name or "", text))
        except TranslationError:
            raise
        except (Exception, SystemExit) as error:  # the reader has several kinds of them, and may want to end the process
            line = min(max(getattr(reader, "linecount", 1), 1), max(len(self.lines), 1))
            raise TranslationError(self.place(line), "the statement cannot be read: is it cut, or a mark of continuation wrong?") from error
        return [s for n, entry in enumerate(found) for s in self._split(n, entry)]


    def _split(self, group, entry):
        """Splits statements at semicolons."""
        (first, last), label, name, text = entry
        parts = []
        mask = masked(text)
        at = 0
        for n, c in enumerate(mask + ";"):
            if c == ";":
                if text[at:n].strip():
                    parts.append(text[at:n].strip())
                at = n + 1
        out = []
        for n, part in enumerate(parts):
            statement = Statement(first, min(last, len(self.lines)), part, label if n == 0 else "",
                                  name if n == 0 else "", group, file=self.file)
            self._check(statement)
            out.append(statement)
        return out

    def _check(self, statement):
        mask = masked(statement.text)
        if statement.text.lower().startswith(("format", "data", "include")):
            return
        if mask.count("'") % 2 or mask.count('"') % 2:
            raise TranslationError(self.place_of(statement), "a text in this statement has no end")
        depth = 0
        for c in mask:
            depth += (c in "([") - (c in ")]")
            if depth < 0:
                break
        if depth:
            raise TranslationError(self.place_of(statement), "the brackets of this statement do not match")

    def _read_directives(self):
        sentinel = _FIXED_SENTINEL if self.fixed else _FREE_SENTINEL
        found = []
        continued = False
        for number, line in enumerate(self.lines, 1):
            match = sentinel.match(line)
            if not match:
                if line.strip() and not self._comment(line):
                    if continued:
                        raise TranslationError(found[-1][2].place(10 ** 9), "the directive is continued by no line",
                                               "Begin the next line with !DVM$*")
                continue
            body = line[match.end():]
            offset = match.end()
            again = re.match(r"[*>&+]", body)
            if again:
                if not found:
                    raise TranslationError(self.place(number, offset + 1), "this line continues no directive")
                body, offset = body[1:], offset + 1
            comment = masked(body).find("!")
            if comment >= 0:
                body = body[:comment]
            body = body.rstrip()
            joined = again or continued
            if joined and found[-1][1] != number - 1 and self._between(found[-1][1], number):
                raise TranslationError(self.place(number, offset + 1), "this line continues no directive")
            continued = body.endswith("&")
            if continued:
                body = body[:-1]
            if joined and body.lstrip().startswith("&"):
                ahead = body.index("&") + 1
                body, offset = body[ahead:], offset + ahead
            if joined:
                first, _, text = found[-1]
                text.add(" ", number, offset + 1)
            else:
                first, text = number, DirectiveText(self.file)
                if not body.strip() and not continued:
                    raise TranslationError(self.place(number), "a directive is missing behind the sentinel")
                found.append((first, number, text))
            text.add(body, number, offset + 1)
            found[-1] = (first, number, text)
        if continued:
            raise TranslationError(found[-1][2].place(10 ** 9), "the directive is continued by no line")
        return [Statement(first, last, "", directive=text, group=-1, file=self.file) for first, last, text in found]

    def _comment(self, line):
        return line.lstrip().startswith("!") or (self.fixed and line[:1] in "cC*dD")

    def _between(self, last, number):
        """Whether a statement stands between two lines of directives."""
        return any(line.strip() and not self._comment(line) for line in self.lines[last:number - 1])

    @staticmethod
    def _merge(statements, directives):
        out = []
        rest = list(directives)
        for statement in statements:
            while rest and rest[0].first < statement.first:
                out.append(rest.pop(0))
            out.append(statement)
        return out + rest


def bracketed(text, at):
    """Returns (inner text, behind the bracket) of the bracket at `at`."""
    close = closing(masked(text), at)
    return (text[at + 1:close], close + 1) if close >= 0 else (None, at)
