# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What directives say, for Fortran and C: data classes with places, and the tokens that grammars read.

Expressions stay texts of the program's language. `DirectiveText` keeps, for each letter, the place in the source
that it came from, so that errors point at the letter even where a directive is continued over several lines.
The grammar of Fortran's directives is `fortran/grammar.py`, that of C's is in `c/`.
"""

import re
from dataclasses import dataclass, field

from .diagnostics import Place, TranslationError


@dataclass
class Expression:
    """A text of the program's language."""

    text: str
    place: Place

    def __str__(self):
        return self.text


@dataclass
class Name:
    text: str
    place: Place

    def __str__(self):
        return self.text


@dataclass
class Reference:
    """An array with subscripts: A(I, J), A[i][j]. A subscript '*' or ':' is a whole dimension; `subscripts` is
    None for the array alone."""

    name: Name
    subscripts: list = None


@dataclass
class Distribution:
    """How one dimension is cut: kind is block, genblock, wgtblock, multblock or '*'; arguments are expressions."""

    kind: str
    place: Place
    arguments: list = field(default_factory=list)


@dataclass
class Width:
    """Elements below and above."""

    low: Expression
    high: Expression


@dataclass
class Halo:
    """An array of SHADOW, SHADOW_RENEW or ACROSS. `widths` is None where the array's own widths are meant."""

    name: Name
    widths: list = None
    corner: bool = False


@dataclass
class Reduction:
    """`operation` in small letters; `companions` are the location variable and the number of its elements of
    MAXLOC and MINLOC; `group` names a reduction group."""

    operation: str
    variable: Reference
    companions: list = field(default_factory=list)
    group: Name = None


@dataclass
class Directive:
    place: Place


@dataclass
class Distribute(Directive):
    formats: list          # Distribution
    arrays: list           # Name
    onto: Reference = None
    again: bool = False    # REDISTRIBUTE


@dataclass
class Align(Directive):
    """`dims`: names, '*' (collapsed) or ':'. `target`: the array or template with its subscripts."""

    dims: list
    arrays: list
    target: Reference = None
    again: bool = False    # REALIGN


@dataclass
class Declared(Directive):
    """TEMPLATE and PROCESSORS: names with extents."""

    what: str
    items: list            # Reference


@dataclass
class Listed(Directive):
    """DYNAMIC, INHERIT, ACTUAL, GET_ACTUAL: names, or subarrays in the last two."""

    what: str
    items: list            # Reference


@dataclass
class Shadow(Directive):
    items: list            # Halo


@dataclass
class ShadowGroup(Directive):
    """`what`: group (declares), start or wait."""

    what: str
    name: Name
    items: list = field(default_factory=list)


@dataclass
class ReductionGroup(Directive):
    what: str              # group, start, wait
    name: Name


@dataclass
class Parallel(Directive):
    loops: list            # Name, outermost first
    on: Reference = None
    private: list = field(default_factory=list)
    reductions: list = field(default_factory=list)
    shadow_renew: list = field(default_factory=list)
    shadow_compute: list = field(default_factory=list)   # Halo
    compute_all: bool = False                            # SHADOW_COMPUTE without arrays
    shadow_start: Name = None
    shadow_wait: Name = None
    across: list = field(default_factory=list)           # Halo
    stage: Expression = None
    remote: list = field(default_factory=list)           # Reference
    consistent: list = field(default_factory=list)       # Reference
    tie: list = field(default_factory=list)              # Reference


@dataclass
class RemoteAccess(Directive):
    items: list            # Reference


@dataclass
class Simple(Directive):
    """REGION, END REGION, HOST_SECTION, END HOST_SECTION, INTERVAL, END INTERVAL, BARRIER and directives that
    only tune: `what` is the name in small letters, `arguments` what follows as an expression or None."""

    what: str
    arguments: Expression = None


@dataclass
class IoMode(Directive):
    modes: list            # local, parallel, async


@dataclass
class CpCreate(Directive):
    name: Name
    variables: list        # Reference
    files: list            # Expression
    mode: str = "parallel"


@dataclass
class CpCall(Directive):
    """CP_SAVE, CP_LOAD and CP_WAIT."""

    what: str              # save, load, wait
    name: Name
    asynchronous: bool = False
    status: Reference = None


class DirectiveText:
    """The text of one directive behind its sentinel, with the place of each letter."""

    def __init__(self, file):
        self.file = file
        self.text = ""
        self._places = []

    def add(self, text, line, column):
        """Adds a part that stands in `line` from `column` on."""
        self.text += text
        self._places += [(line, column + n) for n in range(len(text))]

    def place(self, offset):
        if not self._places:
            return Place(self.file, 1, 1)
        if offset >= len(self._places):
            line, column = self._places[-1]
            return Place(self.file, line, column + 1)
        return Place(self.file, *self._places[offset])


_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+(?:\.\d*)?(?:[eEdD][+-]?\d+)?)|"
                    r"(?P<string>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<sign>::|\*\*|==|/=|<=|>=|->|&&|\|\||.))", re.S)

OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Token:
    kind: str
    text: str
    offset: int            # of the first letter
    end: int               # behind the last one


class Cursor:
    """Reads the tokens of a directive in their order."""

    def __init__(self, source):
        self.source = source
        self.tokens = []
        at = 0
        text = source.text
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                break
            kind = match.lastgroup
            word = match.group(kind)
            if word in "'\"" and kind == "sign":
                raise TranslationError(source.place(match.start(kind)), "the text that begins here has no end")
            if word.strip():
                self.tokens.append(Token(kind, word, match.start(kind), match.end(kind)))
            at = match.end()
        self.at = 0

    def peek(self, ahead=0):
        n = self.at + ahead
        return self.tokens[n] if n < len(self.tokens) else Token("end", "", len(self.source.text.rstrip()),
                                                                 len(self.source.text))

    def done(self):
        return self.at >= len(self.tokens)

    def place(self, token=None):
        return self.source.place((token or self.peek()).offset)

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def error(self, message, token=None, hint=""):
        return TranslationError(self.place(token), message, hint)

    def found(self, token=None):
        token = token or self.peek()
        return f"'{token.text}'" if token.kind != "end" else "the end of the directive"

    def is_sign(self, sign):
        return self.peek().kind == "sign" and self.peek().text == sign

    def accept(self, sign):
        """Takes the sign if it comes next."""
        if self.is_sign(sign):
            self.at += 1
            return True
        return False

    def expect(self, sign, behind=""):
        if not self.accept(sign):
            raise self.error(f"expected '{sign}'{' behind ' + behind if behind else ''}, found {self.found()}")

    def is_word(self, *words):
        return self.peek().kind == "name" and self.peek().text.lower() in words

    def accept_word(self, *words):
        if self.is_word(*words):
            return self.take().text.lower()
        return ""

    def expect_word(self, *words):
        word = self.accept_word(*words)
        if not word:
            raise self.error(f"expected {' or '.join(w.upper() for w in words)}, found {self.found()}")
        return word

    def name(self, what="a name"):
        token = self.peek()
        if token.kind != "name":
            raise self.error(f"expected {what}, found {self.found()}")
        self.at += 1
        return Name(token.text, self.place(token))

    def expression(self, ends, what="an expression", empty=False):
        """Takes tokens until one of `ends` outside of brackets. The text is as in the source."""
        first = self.peek()
        last = None
        stack = []
        while not self.done():
            token = self.peek()
            if token.kind == "sign":
                if not stack and token.text in ends:
                    break
                if token.text in OPENING:
                    stack.append(token)
                elif token.text in OPENING.values():
                    if not stack or OPENING[stack[-1].text] != token.text:
                        raise self.error(f"'{token.text}' closes nothing that was opened")
                    stack.pop()
            last = self.take()
        if stack:
            raise self.error(f"'{stack[-1].text}' is never closed", stack[-1])
        if last is None:
            if empty:
                return None
            raise self.error(f"expected {what}, found {self.found()}")
        return Expression(self.source.text[first.offset:last.end], self.place(first))

    def list_of(self, item):
        """Returns one or more items between commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def finish(self):
        if not self.done():
            raise self.error(f"{self.found()} is not expected here")
