# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Elements of distributed arrays in statements that every rank runs: each is read by its owner and sent to all."""

import re

from ..diagnostics import TranslationError
from .text import masked, uses

_ANY = ("allocated", "present")


class Fetcher:
    """Reads elements for one statement. `lines` come before it."""

    def __init__(self, unit, fail):
        self.unit = unit          # a UnitWriter
        self.fail = fail          # (message, name) raises an error at a place
        self.lines = []

    def expression(self, text, arguments=False):
        """Returns the text with temporary variables in place of elements. With `arguments` whole arrays may stand
        as arguments of calls."""
        out = []
        at = 0
        for use in uses(text):
            if use.start < at or use.member:
                continue
            if use.name in _ANY and use.subscripts is not None:
                out.append(text[at:use.end])
                at = use.end
                continue
            if use.name == "size" and use.subscripts and self.unit.mapping(use.subscripts[0].lower().strip()):
                out.append(text[at:use.start] + self._size(use))
                at = use.end
                continue
            if use.keyword or not self.unit.mapping(use.name):
                continue
            if self.unit.mapping(use.name).template is not None:
                raise self.fail(f"{use.name} is a template: it has no elements", use.name)
            out.append(text[at:use.start])
            out.append(self._element(text, use, arguments))
            at = use.end
        out.append(text[at:])
        return "".join(out)

    def _size(self, use):
        name = use.subscripts[0].lower().strip()
        dim = use.subscripts[1] if len(use.subscripts) > 1 else "0"
        return f"dvm_size({self.unit.handle(name)}, {dim})"

    def _element(self, text, use, arguments):
        if use.subscripts is None:
            if arguments and re.match(r"\s*[,)]", masked(text)[use.end:] + ")") and \
                    re.search(r"[(,]\s*$", "(" + masked(text)[:use.start]):
                return text[use.start:use.end]
            raise self.fail(f"the distributed array {use.name} stands as a whole in an expression outside of a "
                            "PARALLEL loop", use.name)
        if any(":" in masked(s) for s in use.subscripts):
            raise self.fail(f"a section of the distributed array {use.name} stands in an expression outside of a "
                            "PARALLEL loop", use.name)
        subscripts = self.subscripts(use)
        variable = self.unit.temporary(use.name)
        index = self.unit.index(subscripts)
        handle = self.unit.handle(use.name)
        self.lines.append(f"if (dvm_owns({handle}, {index})) {variable} = {use.name}({', '.join(subscripts)})")
        self.lines.append(f"call dvm_send({handle}, {index}, {variable})")
        return variable

    def subscripts(self, use):
        dims = self.unit.rank(use.name)
        if dims is not None and dims != len(use.subscripts):
            raise self.fail(f"{use.name} has {dims} dimensions, here {len(use.subscripts)} subscripts", use.name)
        return [self.expression(s) for s in use.subscripts]
