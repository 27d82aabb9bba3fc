# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Declarations of distributed arrays, and how they come into being."""

import re

from ..diagnostics import TranslationError
from .text import split
from .units import entity, type_and_rest

_KINDS = {"block": "DVM_BLOCK", "*": "DVM_WHOLE", "genblock": "DVM_GENBLOCK", "wgtblock": "DVM_WGTBLOCK",
          "multblock": "DVM_MULTBLOCK"}


def bounds_of(dim):
    """Returns (lower, upper) of a declared dimension."""
    parts = split(dim, ":")
    return ("1", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


class Data:
    def __init__(self, writer):
        self.writer = writer
        self.unit = writer.unit

    def own(self):
        """Returns the names that this unit declares as distributed, targets before what is aligned with them."""
        done, out = set(), []

        def visit(name, depth=0):
            if name in done or name not in self.unit.maps or depth > 50:
                return
            mapping = self.unit.maps[name]
            if mapping.align is not None:
                visit(mapping.align.target.name.text.lower(), depth + 1)
            if name not in done:
                done.add(name)
                out.append(name)

        for name in self.unit.maps:
            visit(name)
        return out

    def rewrite_declarations(self):
        """Takes distributed arrays out of the declarations, and returns their new ones."""
        for statement in self.unit.specification:
            if statement.directive is None:
                self._rewrite(statement)
        lines = []
        for name in self.own():
            lines += self._declaration(name)
        return lines

    def _rewrite(self, statement):
        parsed = type_and_rest(statement.text.strip())
        word = statement.word()
        if parsed:
            kind, attributes, entities = parsed
            kept = [e for e in entities if not self._is_ours(e)]
            if len(kept) == len(entities):
                return
            head = ", ".join([kind] + attributes)
            self.writer.replace(statement, [f"{head} :: {', '.join(kept)}"] if kept else [])
        elif word in ("dimension", "allocatable", "save", "target"):
            rest = statement.text.strip()[len(word):].strip().lstrip(":")
            entities = split(rest)
            kept = [e for e in entities if e and not self._is_ours(e)]
            if len(kept) != len([e for e in entities if e]):
                self.writer.replace(statement, [f"{word} :: {', '.join(kept)}"] if kept else [])

    def _is_ours(self, text):
        found = entity(text)
        return bool(found) and found[0].lower() in self.unit.maps

    def _declaration(self, name):
        mapping, symbol = self.unit.maps[name], self.unit.symbols.get(name)
        keep = ", save" if self.unit.kind in ("program", "module") or self.saved(symbol) else ""
        lines = [f"type(dvm_array){keep} :: dvmh_{name}"]
        if mapping.template is not None:
            return lines
        kind = self.writer.type_of(name)
        dims = ", ".join([":"] * len(symbol.dims))
        if symbol.dummy:
            lines[0] = f"type(dvm_array) :: dvmh_{name}"
            intent = next((a for a in symbol.attributes if a.startswith("intent")), "")
            lines.append(f"{kind}{', ' + intent if intent else ''} :: dvmd_{name}(*)")
            lines.append(f"{kind}, pointer, contiguous :: {name}({dims})")
        else:
            visible = next((", " + a for a in symbol.attributes if a in ("public", "private")), "")
            lines.append(f"{kind}, allocatable, target{keep}{visible} :: {name}({dims})")
        return lines

    def saved(self, symbol):
        return self.unit.saves or (symbol is not None and "save" in symbol.attributes)

    # Creation

    def begin(self):
        """Returns the statements that make the arrays of a unit at its begin."""
        lines = []
        for name in self.own():
            mapping, symbol = self.unit.maps[name], self.unit.symbols.get(name)
            if symbol is not None and symbol.dummy:
                lines += self._dummy(name, symbol)
            elif symbol is not None and "allocatable" in symbol.attributes:
                continue
            elif symbol is not None and any(bounds_of(d)[1] in ("", "*") for d in symbol.dims):
                raise TranslationError(mapping.place, f"{name} has no shape: it is neither allocatable nor an argument")
            else:
                made = self.create(name, symbol.dims if symbol else mapping.template)
                if symbol is not None and self.saved(symbol) and self.unit.kind != "program":
                    made = [f"if (.not. allocated({name})) then"] + made + ["end if"]
                lines += made
        return lines

    def _dummy(self, name, symbol):
        handle = f"dvmh_{name}"
        dims = range(1, len(symbol.dims) + 1)
        extents = ", ".join(f"dvm_high({handle}, {n}) - dvm_low({handle}, {n}) + 1" for n in dims)
        lows = ", ".join(f"dvm_low({handle}, {n}):" for n in dims)
        lines = [f"call dvm_inherit({handle}, loc(dvmd_{name}), {len(symbol.dims)}, '{name}')"]
        for n, dim in enumerate(symbol.dims, 1):
            low, high = bounds_of(dim)
            if low != "1" and low:
                lines.append(f"call dvm_first_is({handle}, {n}, int({low}, 8))")
        # A dummy that were a target would need an explicit interface.
        return lines + [f"call c_f_pointer(dvm_pointer(loc(dvmd_{name})), {name}, [{extents}])", f"{name}({lows}) => {name}"]

    def create(self, name, dims):
        """Returns the statements that make one array or template of these extents."""
        mapping = self.unit.maps.get(name) or self.writer.mapping(name)
        handle = f"dvmh_{name}"
        low = ", ".join(f"int({bounds_of(d)[0]}, 8)" for d in dims)
        high = ", ".join(f"int({bounds_of(d)[1]}, 8)" for d in dims)
        lines = [f"call dvm_shape({handle}, '{name}', [{low}], [{high}])"]
        if mapping.widths is not None:
            below = ", ".join(w[0] for w in mapping.widths)
            above = ", ".join(w[1] for w in mapping.widths)
            lines.append(f"call dvm_shadow({handle}, [{below}], [{above}])")
        if mapping.align is not None:
            lines += self.align(name, mapping)
        elif mapping.formats is not None:
            lines += self.distribute(handle, mapping.formats, mapping.onto)
        else:
            return lines  # memory comes with REDISTRIBUTE or REALIGN
        if mapping.template is None:
            lines += self.memory(name, len(dims))
        return lines

    def align(self, name, mapping):
        handle = f"dvmh_{name}"
        lines = []
        for n, (dim, factor, offset) in enumerate(self.writer.alignment(mapping), 1):
            if dim is not None:
                lines.append(f"call dvm_align({handle}, {n}, {dim}, {factor}, int({offset}, 8))")
        target = mapping.align.target
        used = {dim for dim, _, _ in self.writer.alignment(mapping) if dim is not None}
        for n, subscript in enumerate(target.subscripts or [], 1):
            if n not in used and subscript.text.strip() not in ("*", ":"):
                lines.append(f"call dvm_align_at({handle}, {n}, int({subscript.text}, 8))")
        return lines + [f"call dvm_aligned({handle}, dvmh_{target.name.text.lower()})"]

    def distribute(self, handle, formats, onto):
        lines = []
        for n, how in enumerate(formats, 1):
            arguments = "".join(", " + e.text for e in how.arguments)
            lines.append(f"call dvm_{'whole' if how.kind == '*' else how.kind}({handle}, {n}{arguments})")
        grid = ""
        if onto is not None:
            extents = onto.subscripts or (self.unit.processors.get(onto.name.text.lower()) or onto).subscripts
            if extents is None:
                raise TranslationError(onto.name.place, f"ONTO {onto.name}: it is not declared by PROCESSORS")
            if onto.subscripts and any(":" in e.text for e in onto.subscripts):
                raise TranslationError(onto.name.place, "ONTO a section of processors is not supported")
            grid = ", [" + ", ".join(f"int({e.text})" for e in extents) + "]"
        return lines + [f"call dvm_distribute({handle}{grid})"]

    def memory(self, name, rank):
        handle = f"dvmh_{name}"
        sizes = ", ".join(f"dvm_low({handle}, {n}):dvm_high({handle}, {n})" for n in range(1, rank + 1))
        return [f"allocate ({name}({sizes}))",
                f"call dvm_memory({handle}, loc({name}), dvm_type_of({self.writer.sample(name)}))"]
