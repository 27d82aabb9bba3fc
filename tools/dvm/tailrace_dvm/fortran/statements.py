# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Statements outside of PARALLEL loops: every rank runs them, elements are fetched, and their owners assign them."""

import re

from .. import directives as d
from ..diagnostics import TranslationError
from .files import Files
from .loops import Loop, read_do
from .text import closing, masked, split, uses, names
from .units import is_assignment

_INTRINSIC_WHOLE = "Fill or reduce it in a PARALLEL loop."


class Statements:
    def __init__(self, writer, data):
        self.writer = writer
        self.data = data
        self.unit = writer.unit
        self.source = writer.source
        self.files = Files(writer)
        self.regions = []

    def fail(self, message, statement, name="", hint=""):
        return TranslationError(self.source.place_of(statement, name), message, hint)

    def translate(self):
        statements = self.unit.execution
        at = 0
        while at < len(statements):
            statement = statements[at]
            self.writer.program.current = statement
            self.writer.begin_statement()
            if isinstance(statement.directive, d.Parallel):
                at = Loop(self.writer, statement, statements, at + 1).translate()
                continue
            if statement.directive is not None:
                self._directive(statement)
            else:
                self._statement(statement)
            at += 1
        if self.files.mode is not None:
            raise TranslationError(self.files.mode.place, "no OPEN follows IO_MODE")
        if self.regions:
            raise TranslationError(self.regions[-1][1], f"{self.regions[-1][0].upper()} has no END")

    # Directives

    def _directive(self, statement):
        directive = statement.directive
        lines = []
        if isinstance(directive, d.Simple):
            lines = self._simple(directive)
        elif isinstance(directive, d.Distribute):
            for name in directive.arrays:
                lines += self._redistribute(name, lambda key: self.data.distribute(f"dvmn_{key}", directive.formats,
                                                                                    directive.onto), directive)
        elif isinstance(directive, d.Align):
            for name in directive.arrays:
                lines += self._realign(name, directive)
        elif isinstance(directive, d.RemoteAccess):
            self.writer.pending_remote = directive.items
        elif isinstance(directive, d.ShadowGroup):
            lines = self._shadow_group(directive)
        elif isinstance(directive, d.Listed):
            for item in directive.items:
                name = item.name.text.lower().split("%")[0]
                if not self.writer.mapping(name) and self.writer.symbol(name) is None and self.unit.implicit == {} \
                        and self._implicit_none():
                    raise TranslationError(item.name.place, f"{item.name} is not declared")
        elif isinstance(directive, d.IoMode):
            self.files.mode = directive
        elif isinstance(directive, (d.CpCreate, d.CpCall)):
            lines = self.files.checkpoint(directive)
        self.writer.replace(statement, lines)

    def _implicit_none(self):
        return any(s.directive is None and re.match(r"implicit\s+none", s.text, re.I) for s in self.unit.specification)

    def _simple(self, directive):
        what = directive.what.replace("hostsection", "host_section")
        if what == "barrier":
            return ["call dvm_barrier()"]
        if what in ("region", "host_section", "interval"):
            if what == "region" and any(r[0] == "region" for r in self.regions):
                raise TranslationError(directive.place, "REGION stands inside of a REGION")
            self.regions.append((what, directive.place))
        else:
            inner = what.split()[1]
            if not self.regions or self.regions[-1][0] != inner:
                raise TranslationError(directive.place, f"{what.upper()} ends nothing that began")
            self.regions.pop()
        return []

    def _shadow_group(self, directive):
        group = self.unit.groups.get(directive.name.text.lower())
        if group is None:
            raise TranslationError(directive.name.place, f"the group {directive.name} is not declared by SHADOW_GROUP")
        if directive.what != "start":
            return []
        probe = Loop(self.writer, _Probe(d.Parallel(directive.place, [])), [], 0)
        return [probe.renew(halo, "SHADOW_GROUP") for halo in group.items]

    def _redistribute(self, name, make, directive):
        key = name.text.lower()
        mapping = self.unit.maps.get(key)
        if mapping is None:
            raise TranslationError(name.place, f"REDISTRIBUTE {name}: this program unit does not declare it as distributed",
                                   "An array is redistributed where it is declared.")
        if mapping.inherited:
            raise TranslationError(name.place, f"REDISTRIBUTE {name}: a dummy argument cannot be redistributed here")
        if not mapping.dynamic:
            raise TranslationError(name.place, f"REDISTRIBUTE {name}: it is not DYNAMIC", f"Say DYNAMIC {name}.")
        if self.writer.rank(key) != len(directive.formats):
            raise TranslationError(directive.formats[0].place, f"{name} has {self.writer.rank(key)} dimensions")
        new = self.writer.declare(f"dvmn_{key}", f"type(dvm_array) :: dvmn_{key}")
        lines = [f"call dvm_like({new}, dvmh_{key})"] + make(key) + self._move(key)
        for other in self.data.own():
            align = self.unit.maps[other].align
            if align is not None and self.writer._root(other)[0] == key:
                lines += self._moved_with(other)
        return lines

    def _moved_with(self, other):
        new = self.writer.declare(f"dvmn_{other}", f"type(dvm_array) :: dvmn_{other}")
        aligned = [line.replace(f"({'dvmh_' + other},", f"({new},", 1)
                   for line in self.data.align(other, self.unit.maps[other])]
        return [f"call dvm_like({new}, dvmh_{other})"] + aligned + self._move(other)

    def _move(self, key):
        """The array with its new handle takes the elements of the old one, and its place."""
        if self.unit.maps[key].template is not None:
            return [f"call dvm_replace(dvmh_{key}, dvmn_{key})"]
        rank = self.writer.rank(key)
        dims = ", ".join([":"] * rank)
        kind = self.writer.type_of(key)
        self.writer.declare(f"dvmm_{key}", f"{kind}, allocatable, target :: dvmm_{key}({dims})")
        sizes = ", ".join(f"dvm_low(dvmn_{key}, {n}):dvm_high(dvmn_{key}, {n})" for n in range(1, rank + 1))
        sample = self.writer.sample(key)
        return [f"allocate (dvmm_{key}({sizes}))",
                f"call dvm_memory(dvmn_{key}, loc(dvmm_{key}), dvm_type_of({sample}))",
                f"call dvm_move(dvmh_{key}, dvmn_{key})",
                f"call move_alloc(dvmm_{key}, {key})",
                f"call dvm_replace(dvmh_{key}, dvmn_{key})"]

    def _realign(self, name, directive):
        key = name.text.lower()
        mapping = self.unit.maps.get(key)
        if mapping is None or mapping.inherited or not mapping.dynamic:
            raise TranslationError(name.place, f"REALIGN {name}: it is not a DYNAMIC array of this program unit")
        mapping.align = directive
        if not self.writer.mapping(directive.target.name.text.lower()):
            raise TranslationError(directive.target.name.place, f"{directive.target.name} is not distributed")
        if len(directive.dims) != self.writer.rank(key):
            raise TranslationError(name.place, f"REALIGN {name}: expected {self.writer.rank(key)} dimensions")
        return self._moved_with(key)

    # Statements

    def _statement(self, statement):
        text = statement.text.strip()
        if text.lower().startswith("format") and statement.label:
            return
        lines = self.action(statement, text)
        if lines is not None:
            before, new = lines
            if statement.construct and new:
                new = new[:-1] + [f"{statement.construct}: {new[-1]}"]
            self.writer.new(statement, before, new)

    def action(self, statement, text):
        """Returns (statements before it, new statements), or None if the statement stays as it is."""
        word = re.match(r"\s*(\w*)", text).group(1).lower()
        if is_assignment(text):
            return self._assignment(statement, text)
        if word == "if" and re.match(r"if\s*\(", text, re.I):
            return self._if(statement, text)
        if word in ("stop",) or re.match(r"error\s+stop", text, re.I):
            return self._stop(text)
        if word == "call":
            return self._call(statement, text)
        if word in ("allocate", "deallocate"):
            return self._allocate(statement, text, word)
        if word in ("print", "write", "read", "open", "close", "inquire", "rewind", "backspace", "endfile", "flush"):
            return self.files.statement(statement, text, word)
        if word == "return" and self.unit.kind in ("program",):
            raise self.fail("RETURN stands in the main program", statement)
        return self._other(statement, text, word)

    def _other(self, statement, text, word):
        if not any(self.writer.mapping(n) for n in names(text)):
            return None
        if word in ("else", "elseif", "where", "forall", "elsewhere", "case") or re.match(r"do\s+while", text, re.I):
            name = next(n for n in names(text) if self.writer.mapping(n))
            raise self.fail(f"{text.split('(')[0].strip().upper()} refers to the distributed array {name}", statement, name,
                            "Read the element into a variable before.")
        if word in ("nullify", "namelist", "data", "equivalence"):
            raise self.fail(f"{word.upper()} names a distributed array", statement)
        fetcher = self.writer.fetcher(statement)
        return self._if_changed(text, fetcher.expression(text), fetcher)

    @staticmethod
    def _if_changed(text, new, fetcher):
        return None if new == text and not fetcher.lines else (fetcher.lines, [new])

    def _assignment(self, statement, text):
        mask = masked(text)
        target = uses(text)[0]
        mapping = self.writer.mapping(target.name)
        fetcher = self.writer.fetcher(statement)
        equal = mask.index("=", target.end)
        if not mapping:
            new = fetcher.expression(text)
            return self._if_changed(text, new, fetcher)
        value = text[equal + 1:].strip()
        if target.subscripts is None:
            return self._whole(statement, target, value, fetcher)
        if any(":" in masked(s) for s in target.subscripts):
            raise self.fail(f"a section of the distributed array {target.name} is assigned outside of a PARALLEL loop",
                            statement, target.name, "Assign it in a PARALLEL loop.")
        self.writer.check_alone(statement, value, f"an element of {target.name} is assigned by its owner")
        subscripts = fetcher.subscripts(target)
        value = fetcher.expression(value)
        return fetcher.lines, [f"if (dvm_owns({self.writer.handle(target.name)}, {self.writer.index(subscripts)})) "
                               f"{target.name}({', '.join(subscripts)}) = {value}"]

    def _whole(self, statement, target, value, fetcher):
        for use in uses(value):
            symbol = self.writer.symbol(use.name)
            if use.subscripts is None and (self.writer.mapping(use.name) or (symbol and symbol.dims)):
                raise self.fail(f"an array is assigned to the whole distributed array {target.name} outside of a PARALLEL "
                                "loop", statement, use.name, "Assign it in a PARALLEL loop.")
        if ":" in masked(value) or "[" in masked(value) or "(/" in masked(value):
            raise self.fail(f"an array is assigned to the whole distributed array {target.name}", statement, target.name,
                            "Assign it in a PARALLEL loop.")
        dims = ", ".join([":"] * self.writer.rank(target.name))
        value = fetcher.expression(value)
        return fetcher.lines, [f"{target.name}({dims}) = {value}"]

    def _if(self, statement, text):
        mask = masked(text)
        close = closing(mask, mask.index("("))
        if close < 0:
            raise self.fail("the condition has no end", statement)
        condition, rest = text[mask.index("(") + 1:close], text[close + 1:].strip()
        fetcher = self.writer.fetcher(statement)
        new = fetcher.expression(condition)
        if re.fullmatch(r"then", rest, re.I):
            return None if not fetcher.lines else (fetcher.lines, [f"if ({new}) then"])
        inner = None if re.match(r"\d", rest) else self.action(statement, rest)
        if inner is None:
            return None if not fetcher.lines else (fetcher.lines, [f"if ({new}) {rest}"])
        before, lines = inner
        return fetcher.lines, [f"if ({new}) then"] + before + lines + ["end if"]

    def _stop(self, text):
        if re.match(r"error\s+stop", text, re.I):
            return None
        code = text[4:].strip()
        if not code:
            return [], ["call dvm_end()", "stop"]
        # One rank says the code or the text; the others end in silence.
        return [], ["call dvm_end()", "if (.not. dvm_io()) stop", f"stop {code}"]

    def _call(self, statement, text):
        fetcher = self.writer.fetcher(statement)
        match = re.match(r"call\s+(\w+)\s*(\()?", text, re.I)
        if not match or not match.group(2):
            return None
        close = closing(masked(text), match.end() - 1)
        arguments = split(text[match.end():close])
        self._check_call(statement, match.group(1).lower(), arguments)
        out = []
        for argument in arguments:
            head = re.match(r"(\w+\s*=(?!=)\s*)?(.*)$", argument, re.S)
            value = head.group(2)
            found = uses(value)
            if found and self.writer.mapping(found[0].name) and found[0].start == 0 and found[0].end == len(value.rstrip()):
                if found[0].subscripts is not None:
                    raise self.fail(f"an element or a section of the distributed array {found[0].name} is an argument",
                                    statement, found[0].name,
                                    "Hand on the whole array; or put brackets around an element that is only read.")
                out.append(argument)
                continue
            out.append((head.group(1) or "") + fetcher.expression(value, arguments=True))
        new = text[:match.end()] + ", ".join(out) + text[close:]
        return self._if_changed(text, new if fetcher.lines else text, fetcher)

    def _check_call(self, statement, name, arguments):
        other = self.writer.program.procedures.get(name)
        if other is None:
            return
        for argument, dummy in zip(arguments, other.arguments):
            ours = self.writer.mapping(argument.lower().strip())
            theirs = other.maps.get(dummy)
            if bool(ours) != bool(theirs) and (ours or re.fullmatch(r"\w+", argument.strip())):
                what = "distributed" if ours else "not distributed"
                raise self.fail(f"{argument.strip()} is {what}, but the argument {dummy} of {name} is "
                                f"{'not' if ours else 'distributed'}", statement, argument.strip(),
                                f"Say INHERIT {dummy} in {name}." if ours else "")

    def _allocate(self, statement, text, word):
        open_at = masked(text).index("(") if "(" in text else -1
        if open_at < 0:
            raise self.fail(f"{word.upper()} has no list", statement)
        entries = split(text[open_at + 1:closing(masked(text), open_at)])
        ours = [e for e in entries if uses(e) and self.writer.mapping(uses(e)[0].name)]
        if not ours:
            return self._other(statement, text, word)
        lines = []
        rest = [e for e in entries if e not in ours]
        if any("=" in masked(e) for e in rest):
            raise self.fail(f"{word.upper()} of a distributed array with STAT, SOURCE or the like is not supported", statement)
        if rest:
            lines.append(f"{word} ({', '.join(rest)})")
        for e in ours:
            use = uses(e)[0]
            if word == "deallocate":
                lines += [f"call dvm_free(dvmh_{use.name})", f"deallocate ({use.name})"]
            else:
                lines += self.data.create(use.name, use.subscripts or [])
        return [], lines


class _Probe:
    def __init__(self, directive):
        self.directive = directive
