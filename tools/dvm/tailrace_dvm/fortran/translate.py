# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Translates one Fortran source, or several that belong together."""

import re

from .. import directives as d
from ..diagnostics import TranslationError
from . import units as u
from .data import Data
from .edits import Edits
from .source import Source
from .statements import Statements
from .writer import UnitWriter


class Program:
    """What the sources of one program know of each other."""

    def __init__(self):
        self.sources = []
        self.modules = {}
        self.procedures = {}
        self.current = None
        self.units_together = {}         # unit as it is written: letters of its mode

    def add(self, file, text, fixed=None):
        source = Source(file, text, fixed)
        source.units = u.collect(source)
        for unit in source.units:
            u.analyse(source, unit)
            self._register(unit)
        self.sources.append(source)
        return source

    def _register(self, unit):
        if unit.kind == "module":
            self.modules[unit.name] = unit
        elif unit.kind in ("subroutine", "function"):
            self.procedures[unit.name] = unit
        for inner in unit.units:
            self._register(inner)

    def translate(self, source):
        edits = Edits(source)
        for unit in source.units:
            self._unit(source, unit, edits)
        return edits.render()

    def _unit(self, source, unit, edits):
        writer = UnitWriter(source, unit, edits, self)
        writer.do_labels = {m.group(1) for s in unit.statements if s.directive is None
                            for m in [re.match(r"do\s*(\d+)", s.text, re.I)] if m}
        data = Data(writer)
        used = self._used(writer, unit)
        if used or unit.kind == "program":
            self._open(source, unit, writer, data)
        for inner in unit.units:
            self._unit(source, inner, edits)

    def _used(self, writer, unit):
        """Whether a unit needs anything of us: it has directives, distributed arrays, files or stops."""
        if any(s.directive is not None for s in unit.statements) or unit.maps:
            return True
        if any(self.modules[m].maps for m in writer.unit_modules() if m in self.modules):
            return True
        words = ("stop", "print", "write", "read", "open", "close", "inquire", "rewind", "backspace", "endfile", "flush")
        for s in unit.execution:
            if s.directive is None and re.search(r"\b(" + "|".join(words) + r")\b", s.text, re.I):
                return True
        outer = unit.parent
        return outer is not None and self._used(writer, outer)

    def _open(self, source, unit, writer, data):
        declarations = data.rewrite_declarations()
        begin = data.begin()
        statements = Statements(writer, data)
        statements.translate()
        for s in unit.specification:
            if s.directive is not None:
                writer.replace(s, [])
        self._dummies(unit, writer)
        if unit.kind == "program":
            begin = ["call dvm_begin()"] + self._module_arrays(writer) + begin
        self._place_use(source, unit, writer)
        self._place(source, unit, writer, declarations + list(writer.declared.values()), begin)
        if unit.kind == "module":
            self._module(unit, writer, begin)
        self._ends(unit, writer, data)

    def _module_arrays(self, writer):
        return [f"call dvm_begin_{m}()" for m in reversed(writer.unit_modules())
                if m in self.modules and self.modules[m].maps]

    def _dummies(self, unit, writer):
        """Dummy arguments that are distributed come in under another name."""
        ours = [a for a in unit.arguments if a in unit.maps]
        if not ours:
            return
        text = unit.start.text
        at = text.index("(", re.search(r"\b(subroutine|function)\b", text, re.I).end())
        head, rest = text[:at], text[at:]
        close = rest.index(")")
        listed = [("dvmd_" + a.strip() if a.strip().lower() in ours else a.strip()) for a in rest[1:close].split(",")]
        writer.replace(unit.start, [f"{head}({', '.join(listed)}){rest[close + 1:]}"])

    def _place_use(self, source, unit, writer):
        line = ["use tailrace_dvm"]
        if unit.kind != "program" and unit.parent is not None and unit.parent.kind == "module" and \
                self._used(writer, unit.parent):
            return
        if unit.start is not None:
            writer.edits.after(unit.start, line)
            return
        first = unit.statements[0]
        writer.edits.before(first, line)

    def _place(self, source, unit, writer, declarations, begin):
        """Declarations and the begin stand between specification and execution."""
        lines = declarations + (begin if unit.kind != "module" else [])
        if not lines:
            return
        inside = [s for s in unit.specification if not re.match(r"(use|import|implicit)\b", s.text, re.I)] \
            if False else unit.specification
        anchor = inside[-1] if inside else None
        if anchor is not None:
            writer.edits.after(anchor, lines)
        elif unit.execution:
            writer.edits.before(unit.execution[0], lines)
        elif unit.start is not None:
            writer.edits.after(unit.start, lines)

    def _module(self, unit, writer, begin):
        if not unit.maps:
            return
        name = f"dvm_begin_{unit.name}"
        body = [f"subroutine {name}()", "logical, save :: begun = .false.", "if (begun) return", "begun = .true."] + \
            begin + [f"end subroutine {name}"]
        contains = getattr(unit, "contains", None)
        if contains is not None:
            writer.edits.after(contains, body)
        else:
            writer.edits.before(unit.end, ["contains"] + body)

    def _ends(self, unit, writer, data):
        if unit.kind == "program" and unit.end is not None:
            target = getattr(unit, "contains", None) or unit.end
            writer.edits.before(target, self._label_free(target, ["call dvm_end()"]))
            if target is unit.end and target.label:
                writer.replace(target, [target.text])
        free = [f"call dvm_free(dvmh_{n})" for n in unit.maps
                if unit.kind in ("subroutine", "function") and not data.saved(unit.symbols.get(n))]
        if free and unit.end is not None:
            target = getattr(unit, "contains", None) or unit.end
            writer.edits.before(target, self._label_free(target, free))
            if target is unit.end and target.label:
                writer.replace(target, [target.text])
            for s in unit.execution:
                if s.directive is None and re.match(r"return\b", s.text, re.I):
                    writer.new(s, free, [s.text])
                elif s.directive is None and re.search(r"\)\s*return\s*$", s.text, re.I) and s.word() == "if":
                    condition = s.text[:s.text.rindex(")") + 1]
                    writer.new(s, [], [f"{condition} then"] + free + ["return", "end if"])

    @staticmethod
    def _label_free(target, lines):
        return [f"{target.label}|continue"] + lines if target.label else lines


def translate(file, text, fixed=None):
    """Returns the translated text of one source. All errors are TranslationError."""
    return translate_all([(file, text)], fixed)[0]


def translate_all(files, fixed=None):
    """Returns the translated texts of sources that belong together: [(file, text)]."""
    program = Program()
    source = None
    try:
        for file, text in files:
            source = program.add(file, text, fixed)
        out = []
        for source in program.sources:
            out.append(program.translate(source))
        return out
    except TranslationError:
        raise
    except Exception as error:  # whatever a hostile source does, the user gets a place
        at = program.current
        from ..diagnostics import Place
        place = Place(at.file, at.first, 1) if at is not None else Place(files[0][0], 1, 1)
        raise TranslationError(place, f"the statement cannot be translated ({type(error).__name__}: {error})") from error
