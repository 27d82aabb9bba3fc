# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Program units: which statements they have, what these declare, and what their directives say of arrays."""

import re
from dataclasses import dataclass, field

from .. import directives as d
from ..diagnostics import TranslationError
from . import grammar
from .text import closing, masked, split, squeezed

_SPEC = re.compile(
    r"(use|import|implicit|parameter|integer|real|double|complex|logical|character|type|class|dimension|common|"
    r"equivalence|external|intrinsic|save|data|allocatable|pointer|target|intent|optional|namelist|procedure|include|"
    r"format|byte|public|private|protected|value|volatile|asynchronous|contiguous|entry|enum|enumerator|sequence|"
    r"end\s*type|end\s*enum|interface|abstract|end\s*interface|generic|final|contains|module\s+procedure)\b", re.I)
_TYPE = re.compile(r"(double\s*precision|double\s*complex|integer|real|complex|logical|character|byte|type(?=\s*\()|"
                   r"class(?=\s*\())", re.I)
_UNIT = re.compile(r"(?:(?:recursive|pure|elemental|impure|module|integer|real|double\s*precision|complex|logical|"
                   r"character|type)(?:\s*\*\s*\d+|\s*\([^)]*\))?\s+)*"
                   r"(program|module|submodule|subroutine|function|block\s*data)\b\s*(?:\([^)]*\)\s*)?(\w*)", re.I)
_END = re.compile(r"end\s*((program|module|submodule|subroutine|function|block\s*data|procedure)\b\s*\w*)?\s*$", re.I)
_ASSIGNED = re.compile(r"\w+\s*(\(|=[^=])|\w+\s*=$")


@dataclass
class Symbol:
    name: str              # in small letters
    type: str = ""
    dims: list = None      # texts
    attributes: set = field(default_factory=set)
    length: str = ""       # *8 behind the name
    initial: str = ""
    statement: object = None
    dummy: bool = False
    common: bool = False
    parameter: bool = False


@dataclass
class Mapping:
    """What directives say of one array or template."""

    name: str
    place: object
    formats: list = None       # Distribution; None for arrays that are aligned or inherited
    onto: object = None
    align: object = None       # d.Align
    inherited: bool = False
    dynamic: bool = False
    widths: list = None        # (low, high) as texts
    template: list = None      # extents, as texts
    later: bool = False        # the distribution comes with REDISTRIBUTE or REALIGN


@dataclass
class Unit:
    kind: str
    name: str
    start: object              # the statement that begins it, or None for a program without PROGRAM
    statements: list = field(default_factory=list)
    end: object = None
    parent: object = None
    symbols: dict = field(default_factory=dict)
    maps: dict = field(default_factory=dict)
    arguments: list = field(default_factory=list)
    modules: list = field(default_factory=list)
    units: list = field(default_factory=list)     # contained
    specification: list = field(default_factory=list)
    execution: list = field(default_factory=list)
    processors: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)
    checkpoints: dict = field(default_factory=dict)
    implicit: dict = field(default_factory=dict)
    saves: bool = False

    def symbol(self, name):
        unit = self
        while unit:
            if name in unit.symbols:
                return unit.symbols[name]
            unit = unit.parent
        return None

    def type_of(self, name):
        found = self.symbol(name)
        if found and found.type:
            return found.type
        letter = name[0]
        return self.implicit.get(letter, "integer" if letter in "ijklmn" else "real")


def is_assignment(text):
    """Whether a statement assigns: a name, perhaps with brackets and members, and a sign =."""
    mask = masked(text)
    match = re.match(r"\s*[A-Za-z_]\w*", mask)
    if not match:
        return False
    at = match.end()
    while True:
        rest = mask[at:]
        at += len(rest) - len(rest.lstrip())
        if mask[at:at + 1] == "(":
            close = closing(mask, at)
            if close < 0:
                return False
            at = close + 1
        elif mask[at:at + 1] == "%":
            member = re.match(r"%\s*\w+", mask[at:])
            if not member:
                return False
            at += member.end()
        else:
            return bool(re.match(r"=(?!=)", mask[at:]))


def unit_start(text):
    """Returns (kind, name) if the statement begins a program unit."""
    if is_assignment(text) or re.match(r"module\s+procedure\b", text, re.I):
        return None
    match = _UNIT.match(text)
    if not match or not match.group(2):
        return None
    return re.sub(r"\s", "", match.group(1).lower()), match.group(2).lower()


def collect(source):
    """Returns the outer units of a source, with the units that they contain."""
    outer = []
    current = None
    interface = 0
    for statement in source.statements:
        if statement.directive is not None:
            if current is None:
                current = Unit("program", "", None)
                outer.append(current)
            current.statements.append(statement)
            continue
        text = statement.text
        low = text.lower()
        if re.match(r"(abstract\s+)?interface\b", low) and not is_assignment(text):
            interface += 1
        if interface:
            if re.match(r"end\s*interface\b", low):
                interface -= 1
            if current is not None:
                current.statements.append(statement)
            continue
        started = unit_start(text)
        if started:
            unit = Unit(started[0], started[1], statement, parent=current)
            if current is not None and not _has_contains(current):
                raise TranslationError(source.place_of(statement),
                                       f"{started[0].upper()} {started[1]} begins before the end of the unit around it")
            (current.units if current else outer).append(unit)
            current = unit
            continue
        if current is None:
            if _END.match(text) and not is_assignment(text):
                raise TranslationError(source.place_of(statement), "END ends nothing that began")
            current = Unit("program", "", None)
            outer.append(current)
        if _END.match(text) and not is_assignment(text):
            current.end = statement
            current = current.parent
            continue
        current.statements.append(statement)
    if current is not None and any(s.directive is not None for s in current.statements):
        raise TranslationError(source.place(max(len(source.lines), 1)), "the program unit has no END")
    return outer


def _has_contains(unit):
    return any(s.directive is None and s.text.lower().strip() == "contains" for s in unit.statements)


def analyse(source, unit):
    """Fills in the symbols and mappings of a unit and of those in it."""
    if unit.parent:
        unit.implicit = dict(unit.parent.implicit)
    _arguments(unit)
    _sections(source, unit)
    for statement in unit.specification:
        if statement.directive is None:
            _declare(unit, statement)
    for name in unit.arguments:
        unit.symbols.setdefault(name, Symbol(name)).dummy = True
    for statement in unit.statements:
        if statement.directive is not None:
            statement.directive = grammar.parse(statement.directive) if isinstance(
                statement.directive, d.DirectiveText) else statement.directive
    for statement in unit.specification:
        if statement.directive is not None:
            _map(source, unit, statement)
    for statement in unit.execution:
        directive = statement.directive
        if isinstance(directive, d.ShadowGroup) and directive.what == "group":
            unit.groups[directive.name.text.lower()] = directive
        elif isinstance(directive, d.CpCreate):
            unit.checkpoints[directive.name.text.lower()] = directive
    for name, mapping in unit.maps.items():
        _check_mapping(source, unit, name, mapping)
    for inner in unit.units:
        analyse(source, inner)


def _arguments(unit):
    if unit.start is None or unit.kind not in ("subroutine", "function"):
        return
    match = re.search(r"\b(?:subroutine|function)\s+\w+\s*\(([^)]*)\)", unit.start.text, re.I)
    if match:
        unit.arguments = [a.strip().lower() for a in match.group(1).split(",") if a.strip()]


_DECLARATIVE = (d.Distribute, d.Align, d.Declared, d.Shadow)


def _declares(directive):
    """Whether a directive, parsed or not, belongs to the specification part wherever it stands."""
    if isinstance(directive, d.DirectiveText):
        match = re.match(r"\s*(\w+)", directive.text)
        return bool(match) and match.group(1).lower() in (
            "distribute", "align", "template", "processors", "dynamic", "inherit", "shadow", "reduction_group")
    return False


def is_specification(text):
    return bool(_SPEC.match(text.strip())) and not is_assignment(text)


def _sections(source, unit):
    """Parts the statements into specification and execution."""
    executing = False
    contained = False
    for statement in unit.statements:
        if statement.directive is not None:
            if _declares(statement.directive):
                if executing:
                    raise TranslationError(statement.directive.place(0),
                                           "this directive declares: it stands before the first executable statement")
                unit.specification.append(statement)
            else:
                executing = True
                unit.execution.append(statement)
            continue
        if statement.text.strip().lower() == "contains":
            contained = True
            unit.contains = statement
            continue
        if contained:
            continue
        if not executing and is_specification(statement.text):
            unit.specification.append(statement)
        else:
            executing = True
            unit.execution.append(statement)


def type_and_rest(text):
    """Returns (type, attributes, entities) of a type declaration, or None."""
    match = _TYPE.match(text)
    if not match or is_assignment(text):
        return None
    mask = masked(text)
    at = match.end()
    while True:
        rest = mask[at:]
        blank = len(rest) - len(rest.lstrip())
        here = at + blank
        if mask[here:here + 1] == "*":
            star = re.match(r"\*\s*(\d+|\([^)]*\))", mask[here:])
            if not star:
                return None
            at = here + star.end()
        elif mask[here:here + 1] == "(" and "(" not in text[match.end():here]:
            close = closing(mask, here)
            if close < 0:
                return None
            at = close + 1
            break
        else:
            break
    kind = text[:at].strip()
    attributes = []
    rest = text[at:]
    colons = _colons(rest)
    if colons >= 0:
        attributes = [a for a in split(rest[:colons].lstrip().lstrip(",")) if a]
        rest = rest[colons + 2:]
    elif rest.lstrip()[:1] == "," and kind.lower().startswith("character"):
        rest = rest.lstrip()[1:]
    return kind, attributes, [e for e in split(rest) if e]


def _colons(text):
    depth = 0
    mask = masked(text)
    for n, c in enumerate(mask):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and mask[n:n + 2] == "::":
            return n
    return -1


_ENTITY = re.compile(r"\s*([A-Za-z_]\w*)\s*")


def entity(text):
    """Returns (name, dims, length, initial) of an entity."""
    match = _ENTITY.match(text)
    if not match:
        return None
    name, rest, dims, length, initial = match.group(1), text[match.end():], None, "", ""
    while rest:
        if rest[0] == "(":
            close = closing(masked(rest), 0)
            if close < 0:
                return None
            dims = split(rest[1:close])
            rest = rest[close + 1:].lstrip()
        elif rest[0] == "*":
            star = re.match(r"\*\s*(\d+|\([^)]*\))\s*", rest)
            if not star:
                return None
            length, rest = star.group(0).strip(), rest[star.end():]
        elif rest[0] in "=/":
            initial, rest = rest, ""
        else:
            return None
    return name, dims, length, initial


def _declare(unit, statement):
    text = statement.text.strip()
    word = statement.word()
    parsed = type_and_rest(text)
    if parsed:
        kind, attributes, entities = parsed
        low = {squeezed(a) for a in attributes}
        shared = next((split(a[a.index("(") + 1:a.rindex(")")]) for a in attributes
                       if squeezed(a).startswith("dimension(")), None)
        for text_of in entities:
            found = entity(text_of)
            if not found:
                continue
            name, dims, length, initial = found
            symbol = unit.symbols.setdefault(name.lower(), Symbol(name.lower()))
            symbol.type, symbol.length, symbol.initial, symbol.statement = kind, length, initial, statement
            symbol.dims = dims or shared or symbol.dims
            symbol.attributes |= low
            symbol.parameter = symbol.parameter or "parameter" in low
    elif word in ("dimension", "allocatable", "pointer", "target", "save", "common"):
        _attribute(unit, statement, word, text)
    elif word == "parameter":
        for part in split(text[text.find("(") + 1:text.rfind(")")]):
            name = part.split("=")[0].strip().lower()
            unit.symbols.setdefault(name, Symbol(name)).parameter = True
    elif word == "use":
        match = re.match(r"use\b(?:\s*,\s*\w+\s*)?(?:\s*::)?\s*(\w+)", text, re.I)
        if match:
            unit.modules.append(match.group(1).lower())
    elif word == "implicit":
        _implicit(unit, text)


def _attribute(unit, statement, word, text):
    rest = text[len(word):].strip()
    if word == "save" and not rest:
        unit.saves = True
        return
    if word == "common":
        rest = re.sub(r"/\s*\w*\s*/", ",", rest)
    rest = rest.lstrip(":").strip()
    for part in split(rest):
        found = entity(part) if part else None
        if not found:
            continue
        symbol = unit.symbols.setdefault(found[0].lower(), Symbol(found[0].lower()))
        symbol.dims = found[1] or symbol.dims
        if found[1] and symbol.statement is None:
            symbol.statement = statement
        symbol.common = symbol.common or word == "common"
        if word in ("allocatable", "pointer", "target", "save"):
            symbol.attributes.add(word)


def _implicit(unit, text):
    for match in re.finditer(r"((?:double\s*precision|double\s*complex|integer|real|complex|logical|character)"
                             r"(?:\s*\*\s*\d+|\s*\(\s*(?:kind\s*=\s*)?\w+\s*\))?)\s*\(([a-z,\s-]*)\)", text[8:], re.I):
        for part in match.group(2).lower().replace(" ", "").split(","):
            if not part:
                continue
            for code in range(ord(part[0]), ord(part[-1]) + 1):
                unit.implicit[chr(code)] = match.group(1)


def _mapping(unit, name):
    key = name.text.lower()
    return unit.maps.setdefault(key, Mapping(key, name.place))


def _map(source, unit, statement):
    directive = statement.directive
    if isinstance(directive, d.Distribute):
        for name in directive.arrays:
            mapping = _mapping(unit, name)
            if mapping.formats or mapping.align:
                raise TranslationError(name.place, f"{name} is distributed or aligned twice")
            mapping.formats, mapping.onto = directive.formats or None, directive.onto
            mapping.later = not directive.formats
    elif isinstance(directive, d.Align):
        for name in directive.arrays:
            mapping = _mapping(unit, name)
            if mapping.formats or mapping.align:
                raise TranslationError(name.place, f"{name} is distributed or aligned twice")
            mapping.align = directive if directive.target else None
            mapping.later = directive.target is None
    elif isinstance(directive, d.Declared):
        for item in directive.items:
            if directive.what == "template":
                _mapping(unit, item.name).template = [e.text for e in item.subscripts]
            else:
                unit.processors[item.name.text.lower()] = item
    elif isinstance(directive, d.Shadow):
        for halo in directive.items:
            _mapping(unit, halo.name).widths = [(w.low.text, w.high.text) for w in halo.widths]
    elif isinstance(directive, d.Listed):
        for item in directive.items:
            mapping = _mapping(unit, item.name)
            if directive.what == "inherit":
                mapping.inherited = True
            else:
                mapping.dynamic = True


def _check_mapping(source, unit, name, mapping):
    symbol = unit.symbols.get(name)
    if mapping.template is not None:
        rank = len(mapping.template)
        if mapping.formats is None and not mapping.later:
            raise TranslationError(mapping.place, f"the template {name} is not distributed",
                                   f"Say DISTRIBUTE {name}(BLOCK, ...).")
    else:
        if symbol is None or symbol.dims is None:
            raise TranslationError(mapping.place, f"{name} is not declared as an array in this program unit")
        if symbol.common:
            raise TranslationError(mapping.place, f"{name} lies in COMMON: a distributed array cannot",
                                   "Put it in a module, or hand it on as an argument with INHERIT.")
        if symbol.initial:
            raise TranslationError(mapping.place, f"{name} is distributed and has initial values",
                                   "Assign them in a PARALLEL loop.")
        if "pointer" in symbol.attributes:
            raise TranslationError(mapping.place, f"{name} is a pointer: a distributed array is static or allocatable")
        rank = len(symbol.dims)
        if symbol.dummy:
            mapping.inherited = True
        elif mapping.inherited:
            raise TranslationError(mapping.place, f"INHERIT {name}: it is no dummy argument")
        elif mapping.formats is None and mapping.align is None and not mapping.later:
            raise TranslationError(mapping.place, f"{name} is neither distributed nor aligned")
    if mapping.formats is not None and len(mapping.formats) != rank:
        raise TranslationError(mapping.formats[0].place, f"{name} has {rank} dimension{'s' if rank > 1 else ''}, "
                               f"the distribution {len(mapping.formats)}")
    if mapping.widths is not None and len(mapping.widths) != rank:
        raise TranslationError(mapping.place, f"SHADOW {name}: expected {rank} widths, found {len(mapping.widths)}")
    if mapping.align is not None:
        if len(mapping.align.dims) != rank:
            raise TranslationError(mapping.align.dims[0].place, f"ALIGN {name}: expected {rank} dimensions, "
                                   f"found {len(mapping.align.dims)}")
        target = mapping.align.target.name
        if target.text.lower() not in unit.maps and not _inherited_map(unit, target.text.lower()):
            raise TranslationError(target.place, f"{target} is neither a template nor a distributed array")


def _inherited_map(unit, name):
    while unit.parent:
        unit = unit.parent
        if name in unit.maps:
            return unit.maps[name]
    return None
