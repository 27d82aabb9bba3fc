# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Small readings of Fortran's text: references, lists between commas, names. Strings are skipped everywhere."""

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_]\w*")


def masked(text):
    """Returns the text with the letters of strings as blanks: the same length, nothing in it that looks like a name."""
    out = list(text)
    quote = ""
    for n, c in enumerate(text):
        if quote:
            if c == quote:
                quote = ""
            else:
                out[n] = " "
        elif c in "'\"":
            quote = c
    return "".join(out)


def closing(text, at):
    """Returns where the bracket closes that opens at `at`, or -1. `text` is masked."""
    depth = 0
    for n in range(at, len(text)):
        if text[n] in "([":
            depth += 1
        elif text[n] in ")]":
            depth -= 1
            if depth == 0:
                return n
    return -1


def split(text, sign=","):
    """Splits at a sign outside of brackets and strings."""
    mask = masked(text)
    parts = []
    depth = last = 0
    for n, c in enumerate(mask):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == sign and depth == 0:
            parts.append(text[last:n])
            last = n + 1
    parts.append(text[last:])
    return [p.strip() for p in parts]


@dataclass
class Use:
    """A name in a text, with its subscripts where brackets follow."""

    name: str        # in small letters
    start: int
    end: int         # behind the name, or behind the bracket
    subscripts: list = None
    keyword: bool = False  # of an argument: NAME=
    member: bool = False   # behind a %


def uses(text):
    """Returns the names in a text from left to right; those in subscripts come behind the name itself."""
    mask = masked(text)
    found = []
    for match in _NAME.finditer(mask):
        start, end = match.span()
        before = mask[:start].rstrip()
        if start and (mask[start - 1].isdigit() or mask[start - 1] == "."):
            # 1E5, 1.D0, .AND.
            if mask[start - 1].isdigit() or mask[end:end + 1] == "." or re.search(r"\d\.$", mask[:start]):
                continue
        rest = mask[end:]
        blank = len(rest) - len(rest.lstrip())
        use = Use(match.group().lower(), start, end, member=before.endswith("%"))
        if rest[blank:blank + 1] == "(":
            close = closing(mask, end + blank)
            if close >= 0:
                use.end = close + 1
                inner = text[end + blank + 1:close]
                use.subscripts = split(inner) if inner.strip() else []
        elif rest[blank:blank + 1] == "=" and rest[blank + 1:blank + 2] not in ("=", ">"):
            use.keyword = True
        found.append(use)
    return found


def names(text):
    return {use.name for use in uses(text) if not use.member}


def squeezed(text):
    """Returns the text in small letters without blanks, to compare expressions."""
    return re.sub(r"\s+", "", text).lower()


def replace_name(text, name, by):
    """Puts `by` in place of each use of a variable."""
    out = text
    for use in reversed(uses(text)):
        if use.name == name and not use.member and not use.keyword:
            out = out[:use.start] + by + out[use.start + len(name):]
    return out


def integer(text):
    """Returns the value of an integer literal, or None."""
    plain = squeezed(text)
    while plain.startswith("(") and closing(plain, 0) == len(plain) - 1:
        plain = plain[1:-1]
    return int(plain) if re.fullmatch(r"[+-]?\d+", plain) else None


def linear(text, variable):
    """Returns (factor, offset) as texts if `text` is factor * variable + offset, and None if it is not seen to be.
    `variable` is in small letters."""
    found = [use for use in uses(text) if use.name == variable and not use.member]
    if len(found) != 1:
        return None
    mask = masked(text)
    depth_at = found[0].start
    # Inside of a call or a power it is not linear.
    stack = []
    for n in range(depth_at):
        if mask[n] == "(":
            stack.append(bool(re.search(r"[\w\]]\s*$", mask[:n])))
        elif mask[n] == ")" and stack:
            stack.pop()
    if any(stack) or "/" in mask or "**" in mask:
        return None
    plain = squeezed(text)
    if plain == variable:
        return "1", "0"
    shift = re.fullmatch(re.escape(variable) + r"([+-])(.+)", plain)
    if shift and not re.search(r"[+*-]", shift.group(2)):
        return "1", shift.group(2) if shift.group(1) == "+" else "-" + shift.group(2)
    at0, at1 = replace_name(text, variable, "0"), replace_name(text, variable, "1")
    return f"(({at1})-({at0}))", f"({at0})"
