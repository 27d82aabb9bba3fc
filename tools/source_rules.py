# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checks the rules of this repository's sources that no other tool checks. `./dev lint` checks all of them."""
import collections
import os
import re
import subprocess
import typing
from pathlib import Path

import faces

ROOT = Path(__file__).resolve().parent.parent

C_ENDINGS = (".c", ".cpp", ".h", ".hpp")
SPDX_ENDINGS = C_ENDINGS + (".f90", ".F90", ".f", ".inc", ".py", ".sh", ".cmake", ".in", ".map")
FORMATTED = ("src/", "include/", "tests/", "bench/", "tools/", "examples/", "bindings/")
PUBLIC_HEADERS = "include/"  # contracts may be longer


def source_files():
    """Returns the repository's files that git tracks or does not ignore, or without git all files outside of the build
    folders."""
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    skipped = ("third_party/", "build/", "out/", ".git/")
    return sorted(name for name in set(listed) if not name.startswith(skipped) and (ROOT / name).is_file())


def formatted_files():
    return [name for name in source_files() if name.startswith(FORMATTED) and name.endswith(C_ENDINGS)]


def spdx_problems():
    problems = []
    for name in source_files():
        if name.endswith(SPDX_ENDINGS) or Path(name).name in ("CMakeLists.txt", "dev") or name == ".ci/run":
            with open(ROOT / name, errors="replace") as text:
                head = text.readline() + text.readline()
            if "SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause" not in head:
                problems.append(f"{name}: no SPDX line at the top")
    return problems


def length_problems():
    problems = []
    for name in source_files():
        if not name.endswith(C_ENDINGS + (".f90", ".F90", ".py")) and name != "dev":
            continue
        lines = (ROOT / name).read_text(errors="replace").count("\n")
        limit = 250 if name.endswith((".h", ".hpp")) else 800
        if lines > limit and not name.startswith(PUBLIC_HEADERS):
            problems.append(f"{name}: {lines} lines; the limit is {limit}")
    return problems


FUNCTION_HEAD = re.compile(r"^( {0,4})(?!namespace|class|struct|enum|union|extern|template|if|for|while|switch|do|else)"
                           r"[^\s#/}].*\)[^;]*\{$")


def long_functions(limit=60):
    """Returns the functions of more than `limit` lines. Finds them by the shape that clang-format gives them."""
    found = []
    for name in formatted_files():
        lines = (ROOT / name).read_text(errors="replace").splitlines()
        start, indent = None, ""
        for number, line in enumerate(lines):
            match = FUNCTION_HEAD.match(line) if start is None else None
            if match:
                # A constructor's initialisers are indented deeper than the brace that ends the constructor.
                start, indent = number, "" if line.lstrip().startswith(":") else match.group(1)
            elif start is not None and line.startswith(indent + "}"):
                if number - start + 1 > limit:
                    found.append(f"{name}:{start + 1}: {number - start + 1} lines in one function")
                start = None
    return found


def module_problems():
    """Checks that a module includes only modules that stand before it in src/CMakeLists.txt, and that a folder has at
    most 30 files."""
    order = [*re.findall(r"^add_subdirectory\(([\w/]+)\)", (ROOT / "src/CMakeLists.txt").read_text(), re.M), "ground/sim"]

    def place(path):
        return max((each for each in order if path.startswith(each + "/")), key=len, default=None)

    files = [name for name in source_files() if name.startswith("src/") and name.endswith((".cpp", ".hpp", ".c", ".h"))]
    counts = collections.Counter(os.path.dirname(name) for name in files)
    problems = [f"{folder}: {count} files; the limit is 30" for folder, count in counts.items() if count > 30]
    for name in files:
        module = place(name[len("src/"):])
        if module is None:
            problems.append(f"{name}: is in no module of src/CMakeLists.txt")
            continue
        for included in re.findall(r'^ *# *include "([\w/]+\.\w+)', (ROOT / name).read_text(errors="replace"), re.M):
            other = place(included)
            if other in order[order.index(module) + 1:]:
                problems.append(f"{name}: includes {included}, of a module that stands after {module} in src/CMakeLists.txt")
    return problems


def format_name_problems():
    """Checks that only a format's own module and the registry name the format: other modules ask the registry. "raw" is also
    a word of other options. Versions of a format share a module."""
    problems = []
    for name in source_files():
        if not re.match(r"(src|tools/\w+|bindings)/.*\.\w", name) or name == "src/formats/registry/registry.cpp":
            continue
        module = re.match(r"src/formats/(\w+)/|", name).group(1) or "/"
        text = (ROOT / name).read_text(errors="replace")
        problems += [f"{name}: names \"{each}\"; ask formats/registry/registry.hpp" for each in format_names()
                     if each not in ("", "raw") and not each.startswith(module.rstrip("0123456789")) and f'"{each}"' in text]
    return problems


PAGE_FOLDERS = ("bench", "bindings", "docs", "examples", "python", "src", "tests", "tools")
ROOMS = ("api", "engine", "faces", "formats", "ground")
PLACEHOLDER = re.compile(r"<[\w ]+>|(?<![A-Za-z])(?!README|CHANGELOG|CONTRIBUTING|LICENSE)[A-Z]{2,}(?![A-Za-z])")


def path_pattern(path):
    """Returns the regular expression of the paths that `path` of a page stands for: `*` and a placeholder like NAME or
    <name> stand for any text, {a,b} for one of several."""
    pattern = re.escape(PLACEHOLDER.sub("*", path.rstrip("/"))).replace(r"\*", "[^/]*")
    return re.sub(r"\\{([^{}]*)\\}", lambda braces: f"(?:{braces.group(1).replace(',', '|')})", pattern)


def page_path_problems():
    """Checks that paths in backticks on pages exist: those that begin with a folder of the repository or with a room. Pages
    on the sources (src/, docs/design/) may leave out the first folders of any path."""
    files = source_files()
    folders = {str(parent) for name in files for parent in Path(name).parents}
    known = "".join(f"/{name}\n" for name in sorted({*files, *folders, "third_party", "third_party/xxhash"}))
    problems = []
    for page in [name for name in files if name.endswith(".md")]:
        on_sources = page.startswith(("src/", "docs/design/"))
        starts = ["/", "/src/", f"/{os.path.dirname(page)}/"]
        text = re.sub(r"^```.*?^```", lambda code: "\n" * code.group().count("\n"), (ROOT / page).read_text(), flags=re.M | re.S)
        words = ((number, word.strip("'\",;()")) for number, line in enumerate(text.splitlines(), 1)
                 for span in re.findall(r"`([^`]+)`", line) for word in span.split())
        for number, word in words:
            if not re.fullmatch(r"[\w<{][\w.*<>{},-]*(/[\w.*<>{},-]*)+", word):
                continue
            if not on_sources and word.split("/")[0] not in PAGE_FOLDERS + ROOMS:
                continue
            before = "(?:.*/)" if on_sources else f"(?:{'|'.join(map(re.escape, starts))})"
            if not re.search(f"^{before}{path_pattern(word)}$", known, re.M):
                problems.append(f"{page}:{number}: there is no {word}")
    return problems


class Options(typing.NamedTuple):
    """A table of options, and the places that name all of them."""
    source: str
    table: str
    formats_table: str  # the list in codec::FormatOptions that adds to it; "" = none does
    function: str       # of tailrace.h: the comment before it has KEY=
    procedure: str      # of the Fortran face: it has 'KEY', or a function of a type that it takes has 'KEY=
    page: str           # it has a table with a row for each KEY


OPTIONS = (Options("src/faces/streams/definition/stream_options.cpp", "kStreamRows", "stream", "tr_stream_create", "stream_create", "docs/streams.md"),
           Options("src/faces/streams/definition/field_options.cpp", "kFieldRows", "field", "tr_stream_define", "stream_define", "docs/streams.md"),
           Options("src/faces/input/request.cpp", "open_rows", "", "tr_stream_open", "stream_open", "docs/input.md"),
           Options("src/faces/input/request.cpp", "field_rows", "", "tr_stream_get", "stream_define", "docs/input.md"))
HEADER, FORTRAN = "include/tailrace.h", "bindings/fortran/tailrace.F90"


def text_of(name):
    return (ROOT / name).read_text()


def between(text, begin, end):
    """Returns the text behind the first match of the pattern `begin`, up to `end`, or "" if there is no match."""
    found = re.search(begin, text)
    return text[found.end():].partition(end)[0] if found else ""


def option_keys(options):
    """Returns the keys of a table in its order, and behind them those that the modules of formats add. Returns none if not
    all rows of the table are found."""
    source = text_of(options.source)
    rows = between(source, rf"\b{options.table}\[\] = \{{", "\n};")
    keys = re.findall(r'\{\{"(\w+)",', rows)
    if not keys or len(keys) != rows.count("{{"):
        return []
    # A format lists its own options, formats with variables list theirs together.
    lists = [*sorted(ROOT.glob("src/formats/*/codec.hpp")), ROOT / "src/formats/codec/options.hpp"]
    for text in [each.read_text() for each in lists] if options.formats_table else ():
        rows = re.split(r"\n +\.", between(text, rf"\.{options.formats_table} = ", "\n}"))[0]
        added = re.findall(rf'options\.{options.formats_table}\.push_back\(\{{"(\w+)"', text)
        keys += [key for key in [*re.findall(r'\{"(\w+)", \{', rows), *added] if key not in keys]
    return keys


def comment_before(function):
    """Returns the comment of a function of the public header."""
    return re.split(rf"^TR_API int {function}\(", text_of(HEADER), flags=re.M)[0].rpartition("/* ")[2]


def option_problems():
    """Checks that the public header, the Fortran face and the guides name all options of streams."""
    problems = []
    parts = "".join(text_of(name) for name in source_files() if name.startswith("bindings/fortran/parts/"))
    for options in OPTIONS:
        keys = option_keys(options)
        if not keys:
            problems.append(f"{options.source}: not all rows of {options.table} are found; mend OPTIONS or option_keys() in tools/source_rules.py")
        procedure = between(text_of(FORTRAN), rf"subroutine {options.procedure}\(", "end subroutine")
        rows = {key: f"\n| `{key}` |" for key in keys}
        table = max(re.split(r"\n\n+", text_of(options.page)), key=lambda each: sum(row in each for row in rows.values()))
        for key in keys:
            if not re.search(rf"\b{key}=", comment_before(options.function)):
                problems.append(f"{HEADER}: the comment of {options.function} lacks {key}= ({options.table})")
            if f"'{key}'" not in procedure and not re.search(rf"' ?{key}=", parts):
                problems.append(f"{FORTRAN}: {options.procedure} lacks '{key}' ({options.table})")
            if rows[key] not in table:
                problems.append(f"{options.page}: the table of options lacks a row for {key} ({options.table})")
    return problems


def format_names():
    """Returns the names of the formats of the registry that streams are written in. "" stands for a row whose name is not
    found."""
    body = between(text_of("src/formats/registry/registry.cpp"), r"\nconst std::vector<Format>& all\(", "\n}")
    names = []
    for row in re.split(r"^ {6}(?=\{|\w)", body, flags=re.M)[1:]:
        found = re.match(r'(?:\{\.name = |classic\()(?:"([\w-]+)"|(\w+(?:::\w+)*)::format_name)', row)
        if ".asked_as" in row:
            continue
        module = found and found.group(2)
        names.append(between(text_of(f"src/formats/{module.replace('::', '/')}/codec.hpp"), 'format_name = "', '"') if module else found.group(1) if found else "")
    return names


def format_list_problems():
    """Checks that the public header, the guides and the page of indexes name all formats, and the header all methods."""
    names = format_names()
    if not names or "" in names:
        return ["src/formats/registry/registry.cpp: not all formats of all() are found; mend format_names() in tools/source_rules.py"]
    places = {HEADER: between(comment_before("tr_stream_create"), r"\bformat=NAME", "."),
              "docs/streams.md": between(text_of("docs/streams.md"), r"\n\| `format` \|", " |\n"),
              "docs/choosing-a-format.md": text_of("docs/choosing-a-format.md"),
              "docs/formats/index.md": text_of("docs/formats/index.md")}
    methods = re.findall(r'Method\{\.name = "(\w+)"', text_of("src/engine/pipeline/method.cpp"))
    told = between(comment_before("tr_stream_create"), r"\bmethod=NAME", "manifest=")
    return [f"{HEADER}: method= lacks {name}" for name in methods or ["every method"] if not re.search(rf"\b{name}\b", told)] + [
            f"{place}: the list of formats lacks {name}" for place, text in places.items() for name in names
            if not re.search(rf"\b{name}\b" if place == HEADER else rf"`(format=)?{name}`", text)]


def problems():
    """Returns one line for each place that breaks a rule."""
    return (spdx_problems() + length_problems() + module_problems() + format_name_problems() + page_path_problems() +
            option_problems() + format_list_problems() + faces.problems())
