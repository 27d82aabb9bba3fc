# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""PARALLEL loops: their bounds are cut to what a rank owns, and what they refer to is checked."""

import re

from .. import directives as d
from ..diagnostics import TranslationError
from .text import integer, linear, names, replace_name, split, squeezed, uses, masked
from .units import is_assignment

_DO = re.compile(r"do\b\s*(?:(\d+)\s*,?\s*)?([A-Za-z_]\w*)\s*=\s*(.+)$", re.I | re.S)
_END_DO = re.compile(r"end\s*do\b", re.I)
_ANY_DO = re.compile(r"do\b\s*(\d+)?", re.I)
_FORBIDDEN = ("print", "write", "read", "open", "close", "stop", "return", "allocate", "deallocate", "inquire", "rewind")


def number(text):
    """Returns the value of an expression of integer literals, or None."""
    plain = squeezed(text)
    if not re.fullmatch(r"[\d+*()-]+", plain) or "**" in plain:
        return None
    try:
        return int(eval(plain, {"__builtins__": {}}))  # digits, signs and brackets alone
    except (SyntaxError, TypeError, ValueError):
        return None


def read_do(text):
    """Returns (label, variable, first, last, step) of a counting DO statement, or None."""
    if is_do := _DO.match(text.strip()):
        bounds = split(is_do.group(3))
        if len(bounds) in (2, 3):
            return is_do.group(1) or "", is_do.group(2), bounds[0], bounds[1], bounds[2] if len(bounds) == 3 else ""
    return None


def end_of_loop(statements, at):
    """Returns the position of the statement that ends the DO at `at`, or None."""
    head = _ANY_DO.match(statements[at].text.strip())
    label = head.group(1) if head else None
    if label:
        for n in range(at + 1, len(statements)):
            if statements[n].directive is None and statements[n].label == label:
                return n
        return None
    depth = 1
    for n in range(at + 1, len(statements)):
        s = statements[n]
        if s.directive is not None:
            continue
        if _END_DO.match(s.text):
            depth -= 1
        elif s.word() == "do" and not is_assignment_to_do(s.text):
            if not re.match(r"do\s*\d", s.text, re.I):
                depth += 1
        if depth == 0:
            return n
    return None


def is_assignment_to_do(text):
    return re.match(r"do\s*=|do\s*\(", text, re.I) is not None


class Loop:
    """One PARALLEL directive with the nest of loops below it."""

    def __init__(self, writer, statement, statements, at):
        self.writer = writer
        self.directive = statement.directive
        self.statement = statement
        self.statements = statements
        self.at = at                       # of the first DO
        self.heads = []
        self.begin = []                    # statements before the nest
        self.finish = []                   # statements behind it
        self.buffers = []                  # (array, subscripts with ':' for whole dimensions, buffer)
        self.across = {}

    def fail(self, message, statement=None, name="", hint=""):
        place = self.writer.source.place_of(statement, name) if statement is not None else self.directive.place
        return TranslationError(place, message, hint)

    def translate(self):
        """Returns the position behind the nest."""
        for item in self.directive.consistent:
            raise TranslationError(item.name.place, "CONSISTENT is not supported", f"Distribute {item.name}, or reduce it.")
        self._find_heads()
        end = end_of_loop(self.statements, self.at)
        if end is None:
            raise self.fail("the loop has no end", self.heads[0][0])
        self.end = end
        self._check_on()
        self._remote()
        self._halos()
        self._spans()
        self._reductions()
        self._bounds()
        self._body()
        self.writer.replace(self.statement, self.begin)
        self.writer.edits.after(self.statements[end], self.finish)
        return end + 1

    def _find_heads(self):
        at = self.at
        for name in self.directive.loops:
            if at >= len(self.statements) or self.statements[at].directive is not None:
                raise TranslationError(name.place, f"expected the loop over {name} below the directive")
            statement = self.statements[at]
            head = read_do(statement.text)
            if head is None or head[1].lower() != name.text.lower():
                raise self.fail(f"expected the loop over {name} here, as PARALLEL names it", statement,
                                hint="The loops follow each other directly, the outermost first.")
            self.heads.append((statement, head))
            at += 1
        self.first = at
        self.variables = [n.text.lower() for n in self.directive.loops]
        if len(set(self.variables)) != len(self.variables):
            raise self.fail("PARALLEL names a loop twice")

    def _check_on(self):
        on = self.directive.on
        self.on = {}
        if on is None:
            if self.directive.across or self.directive.shadow_renew:
                return
            return
        name = on.name.text.lower()
        if not self.writer.mapping(name):
            raise TranslationError(on.name.place, f"ON {on.name}: it is not distributed")
        rank = self.writer.rank(name)
        if rank is not None and rank != len(on.subscripts):
            raise TranslationError(on.name.place, f"ON {on.name}: expected {rank} subscripts, found {len(on.subscripts)}")
        for dim, subscript in enumerate(on.subscripts, 1):
            inside = [v for v in self.variables if v in names(subscript.text)]
            if subscript.text.strip() in ("*", ":"):
                continue
            if not inside:
                self.on[dim] = (None, "0", subscript.text)
                continue
            found = linear(subscript.text, inside[0]) if len(inside) == 1 else None
            if found is None:
                raise TranslationError(subscript.place, f"ON {on.name}: the subscript has to be a * {inside[0]} + b")
            if any(entry[0] == inside[0] for entry in self.on.values()):
                raise TranslationError(subscript.place, f"ON {on.name}: {inside[0]} stands in two dimensions")
            self.on[dim] = (inside[0],) + found

    # What comes before the loop

    def _remote(self):
        for item in self.directive.remote + self.writer.pending_remote:
            name = item.name.text.lower()
            if not self.writer.mapping(name):
                raise TranslationError(item.name.place, f"REMOTE_ACCESS: {item.name} is not distributed")
            rank = self.writer.rank(name)
            subscripts = [e.text for e in item.subscripts] if item.subscripts else [":"] * rank
            if len(subscripts) != rank:
                raise TranslationError(item.name.place, f"REMOTE_ACCESS: {item.name} has {rank} dimensions")
            inner = set(self.variables) | self._inner_variables()
            subscripts = [":" if s.strip() in ("", ":", "*") or names(s) & inner else s for s in subscripts]
            whole = [n for n, s in enumerate(subscripts, 1) if s == ":"]
            handle = self.writer.handle(name)
            if not whole:
                fetcher = self.writer.fetcher(self.statement)
                variable = fetcher.expression(f"{name}({', '.join(subscripts)})")
                self.begin += fetcher.lines
                self.buffers.append((name, subscripts, variable))
                continue
            buffer = self.writer.buffer(name, len(whole))
            sizes = ", ".join(f"dvm_lbound({handle}, {n}):dvm_ubound({handle}, {n})" for n in whole)
            low = ", ".join(f"int(dvm_lbound({handle}, {n}), 8)" if s == ":" else f"int({s}, 8)"
                            for n, s in enumerate(subscripts, 1))
            high = ", ".join(f"int(dvm_ubound({handle}, {n}), 8)" if s == ":" else f"int({s}, 8)"
                             for n, s in enumerate(subscripts, 1))
            self.begin += [f"allocate ({buffer}({sizes}))",
                           f"call dvm_section({handle}, [{low}], [{high}], loc({buffer}))"]
            self.finish.append(f"deallocate ({buffer})")
            self.buffers.append((name, subscripts, buffer))
        self.writer.pending_remote = []

    def _inner_variables(self):
        found = set()
        for s in self.statements[self.first:]:
            head = read_do(s.text) if s.directive is None else None
            if head:
                found.add(head[1].lower())
            if s is self.statements[min(self.first + 400, len(self.statements) - 1)]:
                break
        return found

    def _array(self, halo, what):
        name = halo.name.text.lower()
        if not self.writer.mapping(name) or self.writer.mapping(name).template is not None:
            raise TranslationError(halo.name.place, f"{what}: {halo.name} is not a distributed array")
        rank = self.writer.rank(name)
        if halo.widths is not None and rank is not None and len(halo.widths) != rank:
            raise TranslationError(halo.name.place, f"{what}: {halo.name} has {rank} dimensions")
        return name

    def renew(self, halo, what="SHADOW_RENEW"):
        name = self._array(halo, what)
        handle = self.writer.handle(name)
        corner = ".true." if halo.corner else ".false."
        if halo.widths is None:
            return f"call dvm_renew({handle}, {corner})"
        low = ", ".join(w.low.text for w in halo.widths)
        high = ", ".join(w.high.text for w in halo.widths)
        return f"call dvm_renew({handle}, {corner}, [{low}], [{high}])"

    def _halos(self):
        loop = self.directive
        for halo in loop.shadow_renew:
            self.begin.append(self.renew(halo))
        for name in (loop.shadow_start, loop.shadow_wait):
            if name is None:
                continue
            group = self.writer.unit.groups.get(name.text.lower())
            if group is None:
                raise TranslationError(name.place, f"the group {name} is not declared by SHADOW_GROUP")
            if name is loop.shadow_wait or name is loop.shadow_start:
                self.starts = name is loop.shadow_start
                lines = [self.renew(halo, "SHADOW_GROUP") for halo in group.items]
                # SHADOW_START lets the loop compute what it sends first: the exchange comes behind it.
                if self.starts:
                    self.finish += lines
        for halo in loop.across:
            name = self._array(halo, "ACROSS")
            if halo.widths is None:
                raise TranslationError(halo.name.place, f"ACROSS {halo.name}: its widths are missing")
            self.across[name] = halo

    def _spans(self):
        handle = self.writer.handle(self.directive.on.name.text.lower()) if self.directive.on else None
        self.spanned = {}
        for n, variable in enumerate(self.variables, 1):
            low, high = self.writer.integer(f"dvml{n}"), self.writer.integer(f"dvmu{n}")
            entry = next(((dim, e) for dim, e in self.on.items() if e[0] == variable), None)
            if entry is None:
                if n == 1 and any(e[0] is None for e in self.on.values()):
                    self.begin.append(f"call dvm_all({low}, {high})")
                    self.spanned[variable] = (low, high)
                continue
            dim, (_, factor, offset) = entry
            widen = ""
            if self.directive.compute_all or self.directive.shadow_compute:
                widen = ", .true."
            self.begin.append(f"call dvm_span({handle}, {dim}, {factor}, {offset}, {low}, {high}{widen})")
            self.spanned[variable] = (low, high)
        for dim, (variable, _, value) in self.on.items():
            if variable is None:
                low, high = self.spanned.setdefault(self.variables[0], ("dvml1", "dvmu1"))
                self.begin.append(f"call dvm_only({handle}, {dim}, {value}, {low}, {high})")

    def _reductions(self):
        for reduction in self.directive.reductions:
            if self.directive.on is None:
                continue
            self._reduction(reduction)

    def _reduction(self, reduction):
        variable = reduction.variable.name.text
        symbol = self.writer.unit.symbol(variable.lower())
        if self.writer.mapping(variable.lower()):
            raise TranslationError(reduction.variable.name.place, f"REDUCTION: {variable} is distributed")
        if reduction.variable.subscripts:
            variable += "(" + ", ".join(e.text for e in reduction.variable.subscripts) + ")"
        operation = reduction.operation
        handle = self.writer.handle(self.directive.on.name.text.lower())
        fixed = ", ".join("1" if dim in self.on else "0" for dim in range(1, len(self.directive.on.subscripts) + 1))
        if reduction.companions:
            where, count = (e.text for e in reduction.companions)
            self.finish.append(f"call dvm_reduce_{operation}({variable}, {where}, {count})")
            return
        if operation in ("sum", "product", "eqv", "neqv"):
            saved = self.writer.saved(reduction.variable.name.text.lower(), symbol, reduction.variable.subscripts)
            neutral = {"sum": "0", "product": "1", "eqv": ".true.", "neqv": ".false."}[operation]
            self.begin += [f"{saved} = {variable}", f"{variable} = {neutral}"]
            combine = {"sum": f"{saved} + {variable}", "product": f"{saved} * {variable}",
                       "eqv": f"{saved} .eqv. {variable}", "neqv": f"{saved} .neqv. {variable}"}[operation]
            self.finish += [f"if (.not. dvm_first_owner({handle}, [{fixed}])) {variable} = {neutral}",
                            f"call dvm_reduce_{operation}({variable})", f"{variable} = {combine}"]
        else:
            self.finish.append(f"call dvm_reduce_{operation}({variable})")

    # The loop itself

    def _bounds(self):
        signs = {}
        for statement, (label, variable, first, last, step) in self.heads:
            low, high = self.spanned.get(variable.lower(), (None, None))
            value = number(step) if step else 1
            signs[variable.lower()] = -1 if value is not None and value < 0 else 1
            fetcher = self.writer.fetcher(statement)
            first, last, step = (fetcher.expression(t) for t in (first, last, step))
            if fetcher.lines:
                if statement is not self.heads[0][0]:
                    raise self.fail("the bounds of an inner parallel loop refer to distributed arrays", statement)
                self.begin += fetcher.lines
            if low is None:
                continue
            head = f"do {label + ' ' if label else ''}{variable} = "
            if value == 1:
                head += f"max({first}, {low}), min({last}, {high})" + (f", {step}" if step else "")
            elif value == -1:
                head += f"min({first}, {high}), max({last}, {low}), {step}"
            else:
                head += (f"dvm_start({first}, {step}, {low}, {high}), dvm_stop({last}, {step}, {low}, {high}), {step}")
            name = f"{statement.construct}: " if statement.construct else ""
            own = f"{statement.label}|" if statement.label else ""
            self.writer.replace(statement, [own + name + head])
        self._across(signs)

    def _across(self, signs):
        for name, halo in self.across.items():
            direction = []
            for dim in range(1, len(halo.widths) + 1):
                variable = self.on.get(dim, (None,))[0]
                direction.append(str(signs.get(variable, 1)))
            handle = self.writer.handle(name)
            low = ", ".join(w.low.text for w in halo.widths)
            high = ", ".join(w.high.text for w in halo.widths)
            arguments = f"({handle}, [{low}], [{high}], [{', '.join(direction)}])"
            self.begin.append("call dvm_across_begin" + arguments)
            self.finish.insert(0, "call dvm_across_end" + arguments)

    def _body(self):
        private = {n.text.lower() for n in self.directive.private} | set(self.variables)
        reduced = set()
        for reduction in self.directive.reductions:
            reduced.add(reduction.variable.name.text.lower())
            reduced |= {squeezed(e.text) for e in reduction.companions[:1]}
        labels = {s.label for s in self.statements[self.first:self.end + 1] if s.label}
        for statement in self.statements[self.first:self.end + 1]:
            if statement.directive is not None:
                raise TranslationError(statement.directive.place, "a directive stands inside of a PARALLEL loop")
            self._check_statement(statement, private, reduced, labels)

    def _check_statement(self, statement, private, reduced, labels):
        text = statement.text
        head = read_do(text)
        action = _action(text)
        word = re.match(r"\s*(\w*)", action).group(1).lower()
        if not is_assignment(action):
            if word in _FORBIDDEN:
                raise self.fail(f"{word.upper()} stands inside of a PARALLEL loop", statement)
            jump = re.match(r"go\s*to\s*(\d+)\s*$", action, re.I)
            if jump and jump.group(1) not in labels:
                raise self.fail("the statement leaves the PARALLEL loop", statement)
        if head:
            private.add(head[1].lower())
        elif is_assignment(action):
            self._check_assignment(statement, action, private, reduced)
        new = self._references(statement, text, action)
        if new != text:
            name = f"{statement.construct}: " if statement.construct else ""
            own = f"{statement.label}|" if statement.label else ""
            self.writer.replace(statement, [own + name + new])

    def _check_assignment(self, statement, action, private, reduced):
        target = uses(action)[0]
        name = target.name
        if self.writer.mapping(name):
            if target.subscripts is None:
                raise self.fail(f"the whole array {name} is assigned inside of a PARALLEL loop", statement, name)
            return
        if name in private or name in reduced or self.directive.on is None:
            return
        symbol = self.writer.unit.symbol(name)
        if self._stays_inside(name, action):
            private.add(name)
            return
        if symbol is not None and symbol.dims is not None:
            raise self.fail(f"{name} is not distributed and is assigned inside of a PARALLEL loop", statement, name,
                            "Name it in PRIVATE or REDUCTION, or distribute it.")
        raise self.fail(f"{name} is assigned inside of a PARALLEL loop, but is neither PRIVATE nor a REDUCTION",
                        statement, name, f"Say PRIVATE({name}).")

    def _stays_inside(self, name, action):
        """Whether a variable is only used in this loop, and each iteration assigns it before: then it is private."""
        symbol = self.writer.unit.symbol(name)
        if (symbol is not None and (symbol.dims is not None or symbol.dummy or symbol.common)) or \
                self.writer.unit.parent is not None:
            return False
        inside = self.statements[self.first:self.end + 1]
        first = next((s for s in inside if name in names(s.text)), None)
        if first is None or first.text.strip() != action.strip() or name in names(action[action.index("=") + 1:]):
            return False
        if any(re.match(r"(if|do|select|else)\b", s.text, re.I) for s in inside[:inside.index(first)]):
            return False
        return not any(name in names(s.text) for s in self.writer.unit.execution
                       if s.directive is None and s not in inside)

    def _references(self, statement, text, action):
        out = []
        at = 0
        assigned_at = text.find(action) if is_assignment(action) else -1
        for use in uses(text):
            if use.member or use.keyword or not self.writer.mapping(use.name):
                continue
            if use.start < at:
                continue
            if use.subscripts is None:
                raise self.fail(f"the whole distributed array {use.name} stands inside of a PARALLEL loop", statement,
                                use.name)
            replaced = self._buffered(use)
            assigned = assigned_at >= 0 and use.start == assigned_at + len(action) - len(action.lstrip())
            if replaced is not None and not assigned:
                out += [text[at:use.start], replaced]
                at = use.end
                continue
            self._check_reference(statement, use, assigned)
        out.append(text[at:])
        return "".join(out)

    def _buffered(self, use):
        for name, subscripts, buffer in self.buffers:
            if use.name != name or len(use.subscripts) != len(subscripts):
                continue
            if all(p == ":" or squeezed(p) == squeezed(s) for p, s in zip(subscripts, use.subscripts)):
                whole = [s for p, s in zip(subscripts, use.subscripts) if p == ":"]
                inner = []
                for s in whole:
                    inner.append(s)
                # A bare array in REMOTE_ACCESS stands for those elements that the loop does not own.
                return f"{buffer}({', '.join(inner)})" if whole else buffer
        return None

    def _check_reference(self, statement, use, assigned):
        if self.directive.on is None:
            raise self.fail(f"{use.name} is distributed, but the loop has no ON", statement, use.name)
        rank = self.writer.rank(use.name)
        if rank is not None and rank != len(use.subscripts):
            raise self.fail(f"{use.name} has {rank} dimensions, here {len(use.subscripts)} subscripts", statement, use.name)
        on_name = self.directive.on.name.text.lower()
        places = self.writer.positions(use.name, on_name)
        if places is None:
            places = [(dim, 1, "0", True) for dim in range(1, len(use.subscripts) + 1)]
            self.begin_check(on_name, use.name)
        beside = 0
        for dim, subscript in enumerate(use.subscripts, 1):
            target, factor, offset, distributed = places[dim - 1]
            if target is None or not distributed:
                continue
            beside += bool(self._check_dimension(statement, use, dim, subscript, (target, factor, offset), assigned))
        if beside > 1:
            self._check_corner(statement, use)

    def _check_corner(self, statement, use):
        """Elements that lie beside in two dimensions come with the corners alone."""
        if use.name in self.across:
            raise self.fail(f"{use.name}({', '.join(use.subscripts)}): ACROSS brings no corners", statement, use.name)
        for halo in self.directive.shadow_renew:
            if halo.name.text.lower() == use.name and not halo.corner:
                raise self.fail(f"{use.name}({', '.join(use.subscripts)}) lies in a corner of the shadow, which SHADOW_RENEW does "
                                "not bring", statement, use.name, f"Say SHADOW_RENEW({use.name}(CORNER)).")

    def begin_check(self, on_name, name):
        if on_name == name:
            return
        line = f"call dvm_alike({self.writer.handle(on_name)}, {self.writer.handle(name)})"
        if line not in self.begin:
            self.begin.append(line)

    def _check_dimension(self, statement, use, dim, subscript, place, assigned):
        target, factor, offset = place
        entry = self.on.get(target)
        what = f"{use.name}({', '.join(use.subscripts)})"
        if entry is None:
            if self.writer.known(use.name):
                raise self.fail(f"{what}: dimension {dim} is distributed, and ON leaves it open: the element may lie on "
                                "another rank", statement, use.name, "Name it in REMOTE_ACCESS.")
            line = f"call dvm_undivided({self.writer.handle(use.name)}, {dim})"
            if line not in self.begin:
                self.begin.append(line)
            return
        distance = self._distance(subscript, factor, offset, entry)
        if distance is None:
            if not self.writer.known(use.name):
                line = f"call dvm_undivided({self.writer.handle(use.name)}, {dim})"
                if line not in self.begin:
                    self.begin.append(line)
                return
            raise self.fail(f"{what}: dimension {dim} cannot be seen to lie on the rank that runs the iteration",
                            statement, use.name, "Name it in REMOTE_ACCESS, or write it as the subscript of ON and a constant.")
        if distance == 0:
            return 0
        if assigned and not self.directive.compute_all and not self.directive.shadow_compute:
            raise self.fail(f"{what} is assigned, but lies {abs(distance)} beside the element of ON", statement, use.name)
        low, high = self.writer.width(use.name, dim)
        room = low if distance < 0 else high
        if room is not None and abs(distance) > room:
            raise self.fail(f"{what}: dimension {dim} reaches {abs(distance)} beyond the element of ON, its shadow is {room}",
                            statement, use.name, "Widen it with SHADOW, or name it in REMOTE_ACCESS.")
        return distance

    def _distance(self, subscript, factor, offset, entry):
        """Returns by how many elements of the array the subscript lies beside the iteration's own one."""
        variable, on_factor, on_offset = entry
        if variable is None:
            same = squeezed(subscript) == squeezed(on_offset) and (factor, number(offset)) == (1, 0)
            return 0 if same else None
        if variable not in names(subscript):
            return None
        own = linear(subscript, variable)
        if own is None:
            return None
        a, b = number(own[0]), number(own[1])
        oa, ob = number(on_factor), number(on_offset)
        shift = number(offset)
        if shift is not None and None not in (a, b, oa, ob):
            if factor * a != oa:
                return None
            gap = factor * b + shift - ob
            return gap // factor if gap % factor == 0 else None
        if factor == 1 and shift == 0 and squeezed(own[0]) == squeezed(on_factor) and squeezed(own[1]) == squeezed(on_offset):
            return 0
        return None


def _action(text):
    """Returns the statement behind a logical IF, or the text itself."""
    if not re.match(r"if\s*\(", text, re.I) or is_assignment(text):
        return text
    mask = masked(text)
    from .text import closing
    close = closing(mask, mask.index("("))
    rest = text[close + 1:]
    return rest if rest.strip() and not re.match(r"\s*then\s*$", rest, re.I) else text
