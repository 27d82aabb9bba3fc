# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What all parts of the translation of one program unit share: names that it makes, and what is known of arrays."""

import re

from ..diagnostics import TranslationError
from .expressions import Fetcher
from .loops import number
from .text import integer, linear, uses
from .units import _inherited_map


class UnitWriter:
    def __init__(self, source, unit, edits, program):
        self.source = source
        self.unit = unit
        self.edits = edits
        self.program = program          # of all units: which names and dummies are distributed
        self.declared = {}              # name: declaration
        self.pending_remote = []
        self._temporaries = 0
        self._buffers = 0
        self._saved = 0

    # What is known

    def mapping(self, name):
        if name in self.unit.maps:
            return self.unit.maps[name]
        if name in self.unit.symbols:
            return None
        found = _inherited_map(self.unit, name)
        if found:
            return found
        for module in self.unit_modules():
            other = self.program.modules.get(module)
            if other and name in other.maps:
                return other.maps[name]
        return None

    def unit_modules(self):
        unit, seen = self.unit, []
        while unit:
            seen += unit.modules
            unit = unit.parent
        for module in seen:
            other = self.program.modules.get(module)
            if other:
                seen += [m for m in other.modules if m not in seen]
        return seen

    def symbol(self, name):
        found = self.unit.symbol(name)
        if found:
            return found
        for module in self.unit_modules():
            other = self.program.modules.get(module)
            if other and name in other.symbols:
                return other.symbols[name]
        return None

    def rank(self, name):
        mapping = self.mapping(name)
        if mapping and mapping.template is not None:
            return len(mapping.template)
        symbol = self.symbol(name)
        return len(symbol.dims) if symbol and symbol.dims else None

    def known(self, name):
        """Whether the text says how an array is distributed wherever it is used."""
        root = self._root(name)
        if root is None:
            return False
        mapping = self.mapping(root[0])
        return not (mapping.inherited or mapping.dynamic or mapping.later or self.mapping(name).dynamic)

    def _root(self, name, depth=0):
        """Returns (root, [(dimension of the root or None, factor, offset as text)]), None where it is not known."""
        mapping = self.mapping(name)
        if mapping is None or depth > 20:
            return None
        rank = self.rank(name)
        if mapping.align is None:
            return name, [(dim, 1, "0") for dim in range(1, (rank or 0) + 1)]
        target = mapping.align.target.name.text.lower()
        above = self._root(target, depth + 1)
        if above is None:
            return None
        root, places = above
        out = []
        for place in self.alignment(mapping):
            dim, factor, offset = place
            if dim is None:
                out.append((None, 1, "0"))
                continue
            if dim > len(places):
                return None
            rdim, rfactor, roffset = places[dim - 1]
            out.append((rdim, factor * rfactor, f"({rfactor})*({offset})+({roffset})"))
        return root, out

    def alignment(self, mapping):
        """Returns for each dimension of an aligned array (dimension of the target or None, factor, offset)."""
        align = mapping.align
        targets = align.target.subscripts or []
        rank = self.rank(align.target.name.text.lower())
        if rank is not None and targets and len(targets) != rank:
            raise TranslationError(align.target.name.place,
                                   f"ALIGN ... WITH {align.target.name}: expected {rank} subscripts, found {len(targets)}")
        out = []
        colons = [n for n, t in enumerate(targets, 1) if t.text.strip() == ":"]
        for dim in align.dims:
            text = dim.text.strip().lower()
            if text == "*":
                out.append((None, 1, "0"))
            elif text == ":":
                if not colons:
                    raise TranslationError(dim.place, "ALIGN: no ':' of the target is left for this dimension")
                out.append((colons.pop(0), 1, "0"))
            else:
                out.append(self._aligned(dim, text, targets))
        return out

    def _aligned(self, dim, text, targets):
        if not re.fullmatch(r"[a-z_]\w*", text):
            raise TranslationError(dim.place, "ALIGN: expected a name, '*' or ':'")
        for n, target in enumerate(targets, 1):
            found = linear(target.text, text)
            if found:
                factor = number(found[0])
                if not factor:
                    raise TranslationError(target.place, "ALIGN: the factor has to be an integer other than 0")
                return n, factor, found[1]
        raise TranslationError(dim.place, f"ALIGN: {dim.text} stands in no subscript of the target as a * {dim.text} + b")

    def positions(self, name, on_name):
        """Returns for each dimension of an array (dimension of ON's array or None, factor, offset, distributed), or
        None if the text does not say how they lie to each other."""
        rank = self.rank(name) or 0
        here, there = self._root(name), self._root(on_name)
        if name == on_name:
            kinds = self.formats(here)
            return [(dim, 1, "0", kinds[dim - 1]) for dim in range(1, rank + 1)]
        if here is None or there is None or here[0] != there[0] or self.mapping(here[0]).later:
            return None
        kinds = self.formats(here)
        out = []
        for dim, (rdim, factor, offset) in enumerate(here[1], 1):
            match = next((n for n, p in enumerate(there[1], 1) if rdim is not None and p[0] == rdim and p[1] == 1), None)
            if rdim is None:
                out.append((None, 1, "0", False))
            elif match is None:
                out.append((0, 1, "0", kinds[dim - 1]))
            else:
                shift = f"({offset})-({there[1][match - 1][2]})"
                value = number(shift)
                out.append((match, factor, str(value) if value is not None else shift, kinds[dim - 1]))
        return out

    def formats(self, root):
        """Returns for each dimension whether it may be distributed."""
        mapping = self.mapping(root[0])
        out = []
        for rdim, _, _ in root[1]:
            if rdim is None:
                out.append(False)
            elif mapping.formats is None or mapping.dynamic:
                out.append(True)
            else:
                out.append(mapping.formats[rdim - 1].kind != "*")
        return out

    def width(self, name, dim):
        widths = self.mapping(name).widths
        if self.mapping(name).inherited and widths is None:
            return None, None
        if widths is None:
            return 1, 1
        return integer(widths[dim - 1][0]), integer(widths[dim - 1][1])

    # Names that the translation makes

    def handle(self, name):
        return "dvmh_" + name

    def index(self, subscripts):
        return "[" + ", ".join(f"int({s}, 8)" for s in subscripts) + "]"

    def declare(self, name, text):
        self.declared[name] = text
        return name

    def integer(self, name):
        return self.declare(name, f"integer :: {name}")

    def type_of(self, name):
        symbol = self.symbol(name)
        kind = symbol.type if symbol and symbol.type else self.unit.type_of(name)
        return kind + (symbol.length if symbol and symbol.length and "*" not in kind else "")

    def begin_statement(self):
        self._temporaries = 0

    def temporary(self, name):
        self._temporaries += 1
        kind = self.type_of(name)
        key = re.sub(r"\W", "", kind.lower())
        return self.declare(f"dvmt{self._temporaries}_{key}", f"{kind} :: dvmt{self._temporaries}_{key}")

    def sample(self, name):
        """Returns a scalar of an array's type, by which the runtime is told of the type."""
        kind = self.type_of(name)
        key = re.sub(r"\W", "", kind.lower())
        return self.declare(f"dvmx_{key}", f"{kind} :: dvmx_{key}")

    def buffer(self, name, rank):
        self._buffers += 1
        dims = ", ".join([":"] * rank)
        return self.declare(f"dvmb{self._buffers}", f"{self.type_of(name)}, allocatable, target :: dvmb{self._buffers}({dims})")

    def saved(self, name, symbol, subscripts):
        self._saved += 1
        dims = "" if not symbol or not symbol.dims or subscripts else "(" + ", ".join(symbol.dims) + ")"
        return self.declare(f"dvmr{self._saved}", f"{self.type_of(name)} :: dvmr{self._saved}{dims}")

    def fetcher(self, statement):
        def fail(message, name):
            return TranslationError(self.source.place_of(statement, name), message)
        return Fetcher(self, fail)

    def check_alone(self, statement, text, why):
        """Refuses functions that all ranks have to call in a text that one rank evaluates alone."""
        for use in uses(text):
            other = self.program.procedures.get(use.name)
            if other is None or other.kind != "function" or self.symbol(use.name) and self.symbol(use.name).dims:
                continue
            if other.maps or any(s.directive is not None for s in other.statements):
                raise TranslationError(self.source.place_of(statement, use.name), f"{why}, but all ranks have to call {use.name}",
                                       "Call it before, into a variable.")

    # Edits

    def replace(self, statement, lines):
        self.edits.replace(statement, lines)

    def new(self, statement, before, lines):
        """Puts `before` and `lines` in place of a statement, whose label stays reachable."""
        if not statement.label:
            self.edits.replace(statement, before + lines)
        elif statement.label in self.do_labels:
            self.edits.replace(statement, before + lines + [f"{statement.label}|continue"])
        else:
            self.edits.replace(statement, [f"{statement.label}|continue"] + before + lines)
