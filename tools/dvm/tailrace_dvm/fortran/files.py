# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Statements on files, and checkpoints. A formatted file is open on the I/O rank alone, which reads and writes it
with the program's own statement; distributed arrays come together there, and what was read is sent to all."""

import re

from .. import directives as d
from ..diagnostics import TranslationError
from .text import closing, masked, split, uses, names
from .together import Together

# Specifiers that statements fill in: their values are sent to all ranks.
_OUTPUTS = {"open": ("iostat", "iomsg", "newunit"), "close": ("iostat", "iomsg"), "write": ("iostat", "iomsg"),
            "read": ("iostat", "iomsg", "size"), "rewind": ("iostat", "iomsg"), "backspace": ("iostat", "iomsg"),
            "endfile": ("iostat", "iomsg"), "flush": ("iostat", "iomsg"),
            "inquire": ("iostat", "iomsg", "exist", "opened", "number", "named", "name", "access", "sequential", "direct",
                        "form", "formatted", "unformatted", "recl", "nextrec", "blank", "position", "action", "read",
                        "write", "readwrite", "delim", "pad", "size", "pos", "iolength", "stream", "encoding")}


class Files:
    def __init__(self, writer):
        self.writer = writer
        self.mode = None
        self.together = Together(self)

    def fail(self, message, statement, name="", hint=""):
        return TranslationError(self.writer.source.place_of(statement, name), message, hint)

    def statement(self, statement, text, word):
        control, items = self._parts(statement, text, word)
        if not control or not control[0]:
            raise self.fail(f"{word.upper()} is not complete", statement)
        if self._internal(control, word):
            fetcher = self.writer.fetcher(statement)
            new = fetcher.expression(text)
            return None if new == text and not fetcher.lines else (fetcher.lines, [new])
        given = self._specifiers(control)
        if control and "unit" not in given and "file" not in given and word != "print" and not re.match(r"\w+\s*=(?!=)", control[0]):
            given["unit"] = control[0]
            if word in ("read", "write") and len(control) > 1 and "=" not in masked(control[1]):
                given["fmt"] = control[1]
        if word == "open":
            mode, self.mode = self.mode, None
            if "unit" in given and self.together.opens(statement, given, mode):
                return self.together.statement(statement, word, given, items)
        elif self.together.has(given) and "fmt" not in given and "nml" not in given:
            return self.together.statement(statement, word, given, items)
        return self._by_one(statement, word, control, items)

    def _parts(self, statement, text, word):
        rest = text[len(word):].strip()
        if word == "print" or (word == "read" and not rest.startswith("(")) or \
                (word in ("rewind", "backspace", "endfile", "flush") and not rest.startswith("(")):
            parts = split(rest)
            return (parts[:1] if rest else []), [p for p in parts[1:] if p]
        if not rest.startswith("("):
            raise self.fail(f"expected '(' behind {word.upper()}", statement)
        close = closing(masked(rest), 0)
        if close < 0:
            raise self.fail("the brackets of this statement do not match", statement)
        items = rest[close + 1:].strip().lstrip(",").strip()
        return split(rest[1:close]), split(items) if items else []

    def _internal(self, control, word):
        """Whether the unit is a variable of characters: each rank reads or writes its own."""
        if word not in ("read", "write") or not control:
            return False
        unit = re.sub(r"^unit\s*=\s*", "", control[0], flags=re.I)
        found = uses(unit)
        if not found or found[0].start != 0:
            return False
        return self.writer.type_of(found[0].name).lower().startswith("character")

    @staticmethod
    def _specifiers(control):
        out = {}
        for part in control:
            match = re.match(r"(\w+)\s*=(?!=)\s*(.*)$", part, re.S)
            if match:
                out[match.group(1).lower()] = match.group(2).strip()
        return out

    def _by_one(self, statement, word, control, items):
        fetcher = self.writer.fetcher(statement)
        given = self._specifiers(control)
        reads = word == "read"
        if reads and "nml" in given:
            raise self.fail("READ of a namelist is not supported: its variables would differ between ranks", statement, "nml",
                            "Read the variables in a list.")
        for item in items:
            self.writer.check_alone(statement, item, f"{word.upper()} is done by one rank")
        after = [f"call dvm_send_all({given[k]})" for k in _OUTPUTS.get(word, ()) if k in given]
        labels = [(k, given[k]) for k in ("err", "end", "eor") if k in given]
        status = given.get("iostat")
        if labels:
            control = [c for c in control if not re.match(r"(err|end|eor)\s*=", c, re.I)]
            if status is None:
                status = self.writer.integer("dvm_status")
                control.append("iostat=dvm_status")
                after.append("call dvm_send_all(dvm_status)")
        control = [self._control(fetcher, c) for c in control]
        before, new_items, behind = [], [], []
        for item in items:
            self._item(statement, item, reads, fetcher, before, new_items, behind)
        text = self._text(word, control, new_items)
        lines = [f"if (dvm_io()) {text}"] + after + behind
        for kind, label in labels:
            test = {"err": f"{status} > 0", "end": f"is_iostat_end({status})", "eor": f"is_iostat_eor({status})"}[kind]
            lines.append(f"if ({test}) go to {label}")
        return fetcher.lines + before, lines

    def _control(self, fetcher, text):
        if not any(self.writer.mapping(n) for n in names(text)):
            return text
        return fetcher.expression(text)

    @staticmethod
    def _text(word, control, items):
        listed = ", ".join(items)
        if word == "print":
            return f"print {control[0]}" + (f", {listed}" if items else "")
        if word == "read" and len(control) == 1 and "=" not in control[0] and items and control[0] == "*":
            return f"read {control[0]}, {listed}"
        return f"{word} ({', '.join(control)})" + (f" {listed}" if items else "")

    def _item(self, statement, item, reads, fetcher, before, items, behind):
        found = uses(item)
        whole = bool(found) and found[0].start == 0 and found[0].end == len(item)
        name = found[0].name if found else ""
        if whole and self.writer.mapping(name) and \
                (found[0].subscripts is None or any(":" in masked(s) for s in found[0].subscripts)):
            self._array(statement, name, found[0], reads, before, items, behind)
            return
        if not reads:
            if item.startswith("(") and any(self.writer.mapping(n) for n in names(item)):
                self._implied(statement, item, before, items, behind)
                return
            items.append(fetcher.expression(item))
            return
        if whole and self.writer.mapping(name):
            self._read_element(name, found[0], fetcher, items, behind)
            return
        if any(self.writer.mapping(n) for n in names(item)):
            raise self.fail("READ of a distributed array in an implied loop is not supported", statement,
                            next(n for n in names(item) if self.writer.mapping(n)))
        items.append(item)
        if item.startswith("("):
            for use in uses(item):
                symbol = self.writer.symbol(use.name)
                if use.subscripts is not None and symbol is not None and symbol.dims:
                    behind.append(f"call dvm_send_all({use.name})")
        else:
            behind.append(f"call dvm_send_all({item})")

    def _read_element(self, name, use, fetcher, items, behind):
        subscripts = fetcher.subscripts(use)
        variable = self.writer.temporary(name)
        items.append(variable)
        behind.append(f"call dvm_send_all({variable})")
        behind.append(f"if (dvm_owns({self.writer.handle(name)}, {self.writer.index(subscripts)})) "
                      f"{name}({', '.join(subscripts)}) = {variable}")

    def _array(self, statement, name, use, reads, before, items, behind):
        """The I/O rank has the whole array, or the section, in a buffer for the length of the statement."""
        rank = self.writer.rank(name)
        buffer = self.writer.buffer(name, rank)
        handle = self.writer.handle(name)
        subscripts = use.subscripts or [":"] * rank
        if len(subscripts) != rank:
            raise self.fail(f"{name} has {rank} dimensions", statement, name)
        low, high, steps = [], [], []
        for n, s in enumerate(subscripts, 1):
            parts = split(s, ":")
            if len(parts) == 1:
                low.append(parts[0])
                high.append(parts[0])
                steps.append("1")
            else:
                low.append(parts[0] or f"dvm_lbound({handle}, {n})")
                high.append(parts[1] or f"dvm_ubound({handle}, {n})")
                steps.append(parts[2] if len(parts) > 2 else "1")
        at = "[" + ", ".join(f"int({x}, 8)" for x in low) + "]", "[" + ", ".join(f"int({x}, 8)" for x in high) + "]"
        sizes = ", ".join(f"{a}:{b}" for a, b in zip(low, high))
        before.append(f"allocate ({buffer}({sizes}))")
        call = f"({handle}, {at[0]}, {at[1]}, loc({buffer}))"
        section = ", ".join(f"::{s}" if s != "1" else ":" for s in steps)
        items.append(buffer if all(s == "1" for s in steps) else f"{buffer}({section})")
        if not reads or any(s != "1" for s in steps):
            before.append("call dvm_collect" + call)
        if reads:
            behind.append("call dvm_spread" + call)
        behind.append(f"deallocate ({buffer})")

    def _implied(self, statement, item, before, items, behind):
        """(A(I, 3), I = 1, N): the whole arrays come together, and the loop runs over them."""
        text = item
        for name in sorted({n for n in names(item) if self.writer.mapping(n)}):
            rank = self.writer.rank(name)
            buffer = self.writer.buffer(name, rank)
            handle = self.writer.handle(name)
            sizes = ", ".join(f"dvm_lbound({handle}, {n}):dvm_ubound({handle}, {n})" for n in range(1, rank + 1))
            low = ", ".join(f"int(dvm_lbound({handle}, {n}), 8)" for n in range(1, rank + 1))
            high = ", ".join(f"int(dvm_ubound({handle}, {n}), 8)" for n in range(1, rank + 1))
            before += [f"allocate ({buffer}({sizes}))", f"call dvm_collect({handle}, [{low}], [{high}], loc({buffer}))"]
            behind.append(f"deallocate ({buffer})")
            out = text
            for use in reversed(uses(text)):
                if use.name == name and not use.member and not use.keyword:
                    out = out[:use.start] + buffer + out[use.start + len(name):]
            text = out
        items.append(text)

    def checkpoint(self, directive):
        if isinstance(directive, d.CpCreate):
            return self._create(directive)
        name = directive.name.text.lower()
        if name not in self.writer.unit.checkpoints:
            raise TranslationError(directive.name.place, f"the checkpoint {directive.name} is not declared by CP_CREATE above")
        if directive.what == "save":
            return [f"call dvmc_{name}%save({'.true.' if directive.asynchronous else '.false.'})"]
        if directive.what == "load":
            return [f"call dvmc_{name}%load()"]
        status = f"ierr={directive.status.name}" if directive.status else ""
        return [f"call dvmc_{name}%wait({status})"]

    def layout(self, name):
        """Returns (variable with the layout of an array, statements that make it)."""
        variable = self.writer.declare(f"dvmy_{name}", f"type(tr_layout) :: dvmy_{name}")
        if self.writer.mapping(name):
            return variable, [f"call dvm_layout({self.writer.handle(name)}, {variable})"]
        return variable, [f"call {variable}%replicated(shape({name}))"]

    def _create(self, directive):
        name = directive.name.text.lower()
        checkpoint = self.writer.declare(f"dvmc_{name}", f"type(tr_checkpoint), save :: dvmc_{name}")
        lines = []
        for item in directive.variables:
            key = item.name.text.lower()
            if item.subscripts is not None:
                raise TranslationError(item.name.place, "a subarray in VARLIST is not supported", f"Say VARLIST({item.name}).")
            mapping = self.writer.mapping(key)
            symbol = self.writer.symbol(key)
            if mapping and mapping.dynamic:
                raise TranslationError(item.name.place, f"{item.name} is DYNAMIC: in a checkpoint this is not supported")
            if mapping or (symbol is not None and symbol.dims):
                layout, made = self.layout(key)
                lines += made + [f"call {checkpoint}%register('{key}', {key}, {layout})"]
            else:
                lines.append(f"call {checkpoint}%register('{key}', {key})")
        local = ".true." if directive.mode == "local" else ".false."
        only = directive.files[0].text.strip()
        symbol = self.writer.symbol(only.lower())
        if len(directive.files) == 1 and symbol is not None and symbol.dims:
            files = only
        elif len(directive.files) == 1:
            raise TranslationError(directive.files[0].place, "FILES needs two files or more",
                                   "The copies go to them in turn, so that one is whole at any time.")
        else:
            files = "[character(255) :: " + ", ".join(e.text for e in directive.files) + "]"
        mode = "l" if directive.mode == "local" else "p"
        return lines + [f"call {checkpoint}%create_registered('{name}', dvm_names({files}, {local}), '{mode}')"]
