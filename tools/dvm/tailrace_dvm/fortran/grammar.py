# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The grammar of Fortran's directives: from the text behind `!DVM$` to the data classes of directives.py."""

from .. import directives as d

REDUCTIONS = ("sum", "product", "max", "min", "and", "or", "eqv", "neqv", "maxloc", "minloc")

# Directives that only tune an accelerator or the order of messages: the result is the same without them.
_TUNING_CLAUSES = ("cuda_block", "targets", "async")
_FORMATS = {"block": "block", "gen_block": "genblock", "genblock": "genblock", "wgt_block": "wgtblock",
            "wgtblock": "wgtblock", "mult_block": "multblock", "multblock": "multblock"}


def parse(source):
    """Returns the directive of a DirectiveText, or raises TranslationError."""
    cursor = d.Cursor(source)
    if cursor.done():
        raise cursor.error("a directive is missing behind the sentinel")
    token = cursor.peek()
    word = token.text.lower() if token.kind == "name" else ""
    if word == "end":
        cursor.take()
        inner = cursor.accept_word("region", "host_section", "interval", "hostsection")
        if not inner:
            raise cursor.error(f"expected REGION, HOST_SECTION or INTERVAL behind END, found {cursor.found()}")
        directive = d.Simple(source.place(token.offset), "end " + inner)
    else:
        if word not in _PARSERS:
            raise cursor.error(f"the directive {token.text} is unknown or not supported")
        cursor.take()
        directive = _PARSERS[word](cursor, source.place(token.offset), word)
    cursor.finish()
    return directive


# Names, subscripts, widths

def _subscripts(cursor):
    """Returns what stands between round brackets that are still to come."""
    cursor.expect("(")
    items = cursor.list_of(lambda: cursor.expression((",", ")"), "a subscript"))
    cursor.expect(")")
    return items


def _reference(cursor, what="a name"):
    name = cursor.name(what)
    while cursor.is_sign("%"):
        cursor.take()
        name.text += "%" + cursor.name().text
    return d.Reference(name, _subscripts(cursor) if cursor.is_sign("(") else None)


def _references(cursor):
    cursor.expect("(")
    items = cursor.list_of(lambda: _reference(cursor, "a variable"))
    cursor.expect(")")
    return items


def _names(cursor):
    return cursor.list_of(lambda: cursor.name())


def _width(cursor):
    low = cursor.expression((":", ",", ")"), "a width")
    high = low
    if cursor.accept(":"):
        high = cursor.expression((",", ")"), "a width")
    return d.Width(low, high)


def _halo(cursor, corners=False):
    halo = d.Halo(cursor.name("an array"))
    while cursor.accept("("):
        if corners and cursor.accept_word("corner"):
            halo.corner = True
        else:
            halo.widths = cursor.list_of(lambda: _width(cursor))
        cursor.expect(")")
    return halo


def _halos(cursor, corners=False):
    cursor.expect("(")
    items = cursor.list_of(lambda: _halo(cursor, corners))
    cursor.expect(")")
    return items


# Data

def _format(cursor):
    place = cursor.place()
    if cursor.accept("*"):
        return d.Distribution("*", place)
    token = cursor.peek()
    kind = _FORMATS.get(token.text.lower())
    if kind is None:
        raise cursor.error(f"expected BLOCK, GEN_BLOCK, WGT_BLOCK, MULT_BLOCK or *, found {cursor.found()}")
    cursor.take()
    wanted = {"block": 0, "genblock": 1, "wgtblock": 2, "multblock": 1}[kind]
    arguments = _subscripts(cursor) if wanted else []
    if len(arguments) != wanted:
        raise cursor.error(f"{token.text} takes {wanted} argument{'s' if wanted > 1 else ''}", token)
    return d.Distribution(kind, place, arguments)


def _formats(cursor):
    cursor.expect("(")
    items = cursor.list_of(lambda: _format(cursor))
    cursor.expect(")")
    return items


def _onto(cursor):
    return _reference(cursor, "a processor arrangement") if cursor.accept_word("onto") else None


def _distribute(cursor, place, word):
    """DISTRIBUTE A(BLOCK, *), DISTRIBUTE (BLOCK, *) :: A, B, and DISTRIBUTE :: A for what comes later."""
    again = word == "redistribute"
    if cursor.accept("::"):
        return d.Distribute(place, [], _names(cursor), again=again)
    if cursor.is_sign("("):
        formats = _formats(cursor)
        onto = _onto(cursor)
        cursor.expect("::", "the formats")
        return d.Distribute(place, formats, _names(cursor), onto, again)
    name = cursor.name("an array")
    formats = _formats(cursor)
    return d.Distribute(place, formats, [name], _onto(cursor), again)


def _align(cursor, place, word):
    """ALIGN B(I, J) WITH A(I, J), ALIGN (I, J) WITH A(I, J) :: B, C, and ALIGN :: B for what comes later."""
    again = word == "realign"
    if cursor.accept("::"):
        return d.Align(place, [], _names(cursor), again=again)
    arrays = [] if cursor.is_sign("(") else [cursor.name("an array")]
    dims = _subscripts(cursor)
    cursor.expect_word("with")
    target = _reference(cursor, "an array or a template")
    if not arrays:
        cursor.expect("::")
        arrays = _names(cursor)
    return d.Align(place, dims, arrays, target, again)


def _declared(cursor, place, word):
    cursor.accept("::")
    items = cursor.list_of(lambda: _reference(cursor))
    for item in items:
        if item.subscripts is None:
            raise d.TranslationError(item.name.place, f"{word.upper()} {item.name}: its extents are missing")
    return d.Declared(place, word, items)


def _listed(cursor, place, word):
    if word in ("actual", "get_actual"):
        if cursor.accept("("):
            items = [] if cursor.is_sign(")") else cursor.list_of(lambda: _reference(cursor))
            cursor.expect(")")
            return d.Listed(place, word, items)
        return d.Listed(place, word, [])
    cursor.accept("::")
    return d.Listed(place, word, [d.Reference(name) for name in _names(cursor)])


def _shadow(cursor, place, word):
    if cursor.accept("("):
        widths = cursor.list_of(lambda: _width(cursor))
        cursor.expect(")")
        cursor.expect("::")
        return d.Shadow(place, [d.Halo(name, widths) for name in _names(cursor)])
    items = cursor.list_of(lambda: _halo(cursor))
    for item in items:
        if item.widths is None:
            raise d.TranslationError(item.name.place, f"SHADOW {item.name}: its widths are missing")
    return d.Shadow(place, items)


def _shadow_group(cursor, place, word):
    if word == "shadow_group":
        name = cursor.name()
        return d.ShadowGroup(place, "group", name, _halos(cursor, True))
    return d.ShadowGroup(place, word[len("shadow_"):], cursor.name())


def _reduction_group(cursor, place, word):
    return d.ReductionGroup(place, word[len("reduction_"):], cursor.name())


# Loops

def _reduction(cursor, group):
    token = cursor.peek()
    operation = cursor.name("an operation").text.lower()
    if operation not in REDUCTIONS:
        raise cursor.error(f"unknown reduction {token.text}; known are {', '.join(REDUCTIONS).upper()}", token)
    cursor.expect("(", token.text)
    variable = _reference(cursor, "a variable")
    companions = []
    while cursor.accept(","):
        companions.append(cursor.expression((",", ")")))
    cursor.expect(")")
    wanted = (2,) if operation.endswith("loc") else (0,)
    if len(companions) not in wanted:
        raise cursor.error(f"{token.text} takes {wanted[0] + 1} argument{'s' if wanted[0] else ''}", token)
    return d.Reduction(operation, variable, companions, group)


def _reductions(cursor):
    cursor.expect("(")
    group = None
    if cursor.peek(1).text == ":":
        group = cursor.name()
        cursor.take()
    items = cursor.list_of(lambda: _reduction(cursor, group))
    cursor.expect(")")
    return items


def _clause(cursor, loop):
    token = cursor.peek()
    word = cursor.name("a clause").text.lower()
    if word in ("new", "private"):
        cursor.expect("(")
        loop.private += _names(cursor)
        cursor.expect(")")
    elif word == "reduction":
        loop.reductions += _reductions(cursor)
    elif word == "shadow_renew":
        loop.shadow_renew += _halos(cursor, True)
    elif word == "shadow_compute":
        if cursor.is_sign("("):
            loop.shadow_compute += _halos(cursor)
        else:
            loop.compute_all = True
    elif word == "shadow_start":
        loop.shadow_start = cursor.name()
    elif word == "shadow_wait":
        loop.shadow_wait = cursor.name()
    elif word == "across":
        loop.across += _halos(cursor)
    elif word == "stage":
        loop.stage = _subscripts(cursor)[0]
    elif word == "remote_access":
        loop.remote += _remote(cursor)
    elif word == "consistent":
        loop.consistent += _references(cursor)
    elif word == "tie":
        loop.tie += _references(cursor)
    elif word in _TUNING_CLAUSES:
        if cursor.is_sign("("):
            _subscripts(cursor)
    else:
        raise cursor.error(f"the clause {token.text} is unknown or not supported", token)


def _parallel(cursor, place, word):
    cursor.expect("(", "PARALLEL")
    loops = _names(cursor)
    cursor.expect(")")
    loop = d.Parallel(place, loops)
    if cursor.accept_word("on"):
        loop.on = _reference(cursor, "an array or a template")
        if loop.on.subscripts is None:
            raise d.TranslationError(loop.on.name.place, f"ON {loop.on.name}: its subscripts are missing")
    while not cursor.done():
        cursor.accept(",")
        _clause(cursor, loop)
    return loop


def _remote(cursor):
    cursor.expect("(")
    if cursor.peek(1).text == ":" and cursor.peek().kind == "name":
        cursor.take()
        cursor.take()
    items = cursor.list_of(lambda: _reference(cursor, "an array"))
    cursor.expect(")")
    return items


def _remote_access(cursor, place, word):
    return d.RemoteAccess(place, _remote(cursor))


def _simple(cursor, place, word):
    rest = cursor.expression((), empty=True)
    if rest is not None and word in ("barrier", "host_section", "hostsection"):
        raise d.TranslationError(rest.place, f"nothing is expected behind {word.upper()}")
    return d.Simple(place, word, rest)


# Files and checkpoints

def _io_mode(cursor, place, word):
    cursor.expect("(", "IO_MODE")
    modes = []
    if not cursor.is_sign(")"):
        modes = cursor.list_of(lambda: cursor.expect_word("local", "parallel", "async"))
    cursor.expect(")")
    if "local" in modes and "parallel" in modes:
        raise d.TranslationError(place, "IO_MODE: LOCAL and PARALLEL exclude each other")
    return d.IoMode(place, modes)


def _cp_create(cursor, place, word):
    create = d.CpCreate(place, cursor.name("the checkpoint's name"), [], [])
    while not cursor.done():
        cursor.accept(",")
        token = cursor.peek()
        clause = cursor.name("VARLIST, FILES, PARALLEL or LOCAL").text.lower()
        if clause == "varlist":
            create.variables += _references(cursor)
        elif clause == "files":
            create.files += _subscripts(cursor)
        elif clause in ("parallel", "local"):
            create.mode = clause
        else:
            raise cursor.error(f"expected VARLIST, FILES, PARALLEL or LOCAL, found {token.text}", token)
    for given, what in ((create.variables, "VARLIST"), (create.files, "FILES")):
        if not given:
            raise d.TranslationError(place, f"CP_CREATE {create.name}: {what}(...) is missing")
    return create


def _cp_call(cursor, place, word):
    call = d.CpCall(place, word[len("cp_"):], cursor.name("the checkpoint's name"))
    while cursor.accept(","):
        if call.what == "save":
            cursor.expect_word("async")
            call.asynchronous = True
        elif call.what == "wait":
            cursor.expect_word("status")
            cursor.expect("(")
            call.status = _reference(cursor, "an integer variable")
            cursor.expect(")")
        else:
            raise cursor.error("nothing is expected behind the name")
    return call


_PARSERS = {
    "distribute": _distribute, "redistribute": _distribute, "align": _align, "realign": _align,
    "template": _declared, "processors": _declared, "dynamic": _listed, "inherit": _listed,
    "actual": _listed, "get_actual": _listed, "shadow": _shadow,
    "shadow_group": _shadow_group, "shadow_start": _shadow_group, "shadow_wait": _shadow_group,
    "reduction_group": _reduction_group, "reduction_start": _reduction_group, "reduction_wait": _reduction_group,
    "parallel": _parallel, "remote_access": _remote_access,
    "region": _simple, "host_section": _simple, "hostsection": _simple, "interval": _simple, "barrier": _simple,
    "io_mode": _io_mode, "cp_create": _cp_create, "cp_save": _cp_call, "cp_load": _cp_call, "cp_wait": _cp_call,
}
