# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The C headers describe all calls of the library. The interfaces through which Fortran calls them and the C++ face are written by hand.
`./dev lint` compares them with the headers. Compilers do not: with a wrong kind, order or number of arguments a Fortran program reads other
memory.

What is compared:
  each interface of bindings/fortran with bind(c): a header declares the function, with these arguments, each of this name, by value or by reference, of
  this kind, and not changed where C has const; names tell two arguments of one kind apart
  the components of each type with bind(c), and the members of its struct, with their names
  the calls of the headers, and those that Fortran and the C++ face make: what they lack is in LACKS, with the reason
"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ["include/tailrace.h", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "include/tailrace").glob("*.h"))]
PRIVATE = ["src/api/c/fortran_files.hpp"]  # functions for the Fortran face alone

# A kind of argument is (C type by value, or what the pointer leads to; number of pointers; const). "any" is what a type(c_ptr) leads to.
FORTRAN_KINDS = {"integer(c_int)": "int32", "integer(fint)": "int32", "integer(c_int32_t)": "int32", "integer(c_int64_t)": "int64",
                 "integer(c_size_t)": "int64", "real(c_double)": "double", "real(c_float)": "float", "character(kind=c_char)": "char",
                 "type(c_funptr)": "function"}
C_KINDS = {"int": "int32", "int32_t": "int32", "MPI_Fint": "int32", "tr_index": "int64", "int64_t": "int64", "size_t": "int64", "double": "double",
           "float": "float", "char": "char", "MPI_Comm": "communicator"}

# Each type of Fortran with bind(c), and its struct.
TYPES = {"variable": "tr_item_f", "c_variable": "tr_variable", "c_array": "tr_array", "c_record": "tr_record", "c_encoder": "tr_encoder",
         "c_piece": "tr_piece"}

FILES = "the calls of C's stdio: a C++ program makes them as they are"
# What a face lacks on purpose: a header or a call, and the reason.
LACKS = {
    "C++": {"include/tailrace/files.h": FILES, "include/tailrace/call_sites.h": FILES, "include/tailrace/arrays.h": FILES,
            "include/tailrace/windows.h": "arrays out of core are C's alone",
            "include/tailrace/donio.h": "the calls of C and Fortran programs for DONIO",
            "tr_init_f": "Fortran's handles", "tr_shared_open_comm_f": "Fortran's handles", "tr_global_create_comm_f": "Fortran's handles",
            "tr_layout_coordinates_array": "for Fortran, whose latitudes and longitudes are one array",
            "tr_record_key": "an encoder in C++ gets the tr_record itself"},
    "Fortran": {"include/tailrace/files.h": "Fortran's files are tr_file, over calls of its own", "include/tailrace/call_sites.h": "for C's preprocessor", "include/tailrace/arrays.h": "they are reads and writes of tr_file",
                "include/tailrace/windows.h": "arrays out of core are C's alone",
                "tr_init": "tr_init_f", "tr_shared_open_comm": "tr_shared_open_comm_f", "tr_global_create_comm": "tr_global_create_comm_f",
                "tr_layout_coordinates": "tr_layout_coordinates_array",
                "tr_encoded_room": "an encoder in Fortran appends arrays", "tr_encoded_used": "as tr_encoded_room"},
}


def text_of(name):
    return (ROOT / name).read_text()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def split_arguments(text):
    """Splits at commas that no parentheses enclose."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def c_kind(declaration):
    """Returns the kind of a C parameter or member, and its name."""
    if "(*" in declaration:
        return ("function", 0, False), re.search(r"\(\*\s*(\w+)", declaration)[1]
    match = re.fullmatch(r"(const )?\s*(?:struct |enum )?(\w+)\s*((?:\*|const|\s)*)(\w+)?\s*(\[\w*\])?", declaration)
    if match is None:
        return None, declaration
    base, pointers = match[2], match[3].count("*") + (1 if match[5] is not None else 0)
    return (C_KINDS.get(base, base), pointers, match[1] is not None), match[4] or ""


class CFunction:
    def __init__(self, header, result, name, parameters):
        self.header, self.name = header, name
        self.result = c_kind(result + " r")[0]
        self.parameters = [] if parameters.strip() == "void" else [c_kind(re.sub(r"\s+", " ", each)) for each in split_arguments(parameters)]


def c_functions(headers):
    functions = {}
    for header in headers:
        text = without_comments(text_of(header))
        for result, name, parameters in re.findall(r"TR_API\s+([\w\s*]+?)\s*\b(tr_\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*(?:TR_\w+\([^;]*\))?;", text):
            functions[name] = CFunction(header, re.sub(r"\s*\*", "*", result.replace("*", " *")), name, parameters)
    return functions


def c_structs(headers):
    """Returns the members of each struct, as (kind, name, number of elements)."""
    structs = {}
    for header in headers:
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", without_comments(text_of(header)), flags=re.S):
            members = []
            for statement in filter(None, (re.sub(r"\s+", " ", each).strip() for each in body.split(";"))):
                length = re.search(r"\[(\w+)\]", statement)
                kind, member = c_kind(re.sub(r"\s*\[\w+\]", "", statement))
                members.append((kind, member, length[1] if length else ""))
            structs[name] = members
    return structs


# ---- Fortran

def fortran_lines(text):
    """Returns statements without comments, in small letters, with continued lines joined."""
    lines = (re.sub(r"!.*", "", line).rstrip() for line in text.splitlines())
    return [re.sub(r"\s+", " ", line).strip() for line in re.sub(r"&\s*\n\s*&?", " ", "\n".join(lines)).splitlines()]


class FortranFunction:
    def __init__(self, place, name, arguments):
        self.place, self.name, self.arguments, self.kinds = place, name, arguments, {}


def fortran_kind(type_name, attributes, is_array):
    by_value = "value" in attributes
    constant = "intent(in)" in attributes
    if type_name == "type(c_ptr)":
        return ("any", 1 if by_value else 2, constant)
    kind = FORTRAN_KINDS.get(type_name, re.sub(r"type\((\w+)\)", r"\1", type_name))
    return (kind, 0 if by_value else 1, constant)


def declared(line):
    """Returns (type, attributes, [(name, is an array)]) of a declaration, or None."""
    match = re.fullmatch(r"((?:integer|real|type|character|logical|complex)\s*\([^)]*\))\s*((?:,\s*[^:]*?)?)\s*::\s*(.*)", line)
    if match is None:
        return None
    attributes = [each.replace(" ", "") for each in match[2].split(",") if each.strip()]
    names = [(re.match(r"\w+", each)[0], "(" in each, each) for each in split_arguments(match[3])]
    return match[1].replace(" ", ""), attributes, names


def fortran_functions(files):
    functions = []
    for place in files:
        current = None
        for line in fortran_lines(text_of(place)):
            begin = re.match(r"(?:function|subroutine) (\w+)\s*\(([^)]*)\)\s*bind\s*\(c(?:, *name *= *'(\w*)')?\)(?: result\((\w+)\))?", line, re.I)
            if begin:
                name = begin[3] if begin[3] is not None else begin[1].lower()
                current = FortranFunction(place, name, [each.strip() for each in begin[2].split(",") if each.strip()]) if name.startswith("tr_") else None
                if current is not None:
                    current.result = begin[4]
                    functions.append(current)
            elif re.match(r"end (function|subroutine)|end(function|subroutine)", line):
                current = None
            elif current is not None and (found := declared(line)):
                for name, is_array, _ in found[2]:
                    current.kinds[name] = fortran_kind(found[0], found[1], is_array)
    return functions


def fortran_types(files):
    types = {}
    for place in files:
        members = None
        for line in fortran_lines(text_of(place)):
            begin = re.match(r"type, bind\(c\)(?:, \w+)? :: (\w+)", line)
            if begin:
                members = types[begin[1]] = []
            elif line.startswith("end type"):
                members = None
            elif members is not None and (found := declared(line)):
                for name, is_array, whole in found[2]:
                    length = re.search(r"\((\w+)\)", whole)
                    members.append((FORTRAN_KINDS.get(found[0], found[0]), name, length[1] if length else ""))
    return types


def agrees(c, fortran):
    """True if an argument that Fortran passes so is what C expects."""
    (base, pointers, constant), (kind, references, reads_only) = c, fortran
    if kind == "any":
        if base == "function":
            return False
        return pointers == references or (base == "void" and pointers == 1 and references == 1)
    if base == "function" or kind == "function":
        return base == kind
    if pointers != references:
        return False
    if pointers == 1 and constant != reads_only and base != "communicator":
        return False
    return base == "void" or base == TYPES.get(kind, kind)


def struct_problems(structs, types):
    problems = []
    for name, members in types.items():
        if name not in TYPES:
            problems.append(f"bindings/fortran: type {name} has bind(c), and tools/faces.py does not know which struct of C it is: add it to TYPES")
            continue
        struct = structs[TYPES[name]]
        if len(struct) != len(members):
            problems.append(f"bindings/fortran: type {name} has {len(members)} components, and struct {TYPES[name]} {len(struct)} members")
            continue
        for (kind, c_name, length), (fortran, component, f_length) in zip(struct, members):
            is_pointer = kind[1] > 0
            good = fortran == "type(c_ptr)" if is_pointer else fortran == kind[0]
            if not good or length != f_length or component.lower() != c_name.lower():
                problems.append(f"bindings/fortran: type {name} and struct {TYPES[name]} differ at the member {c_name}")
    return problems


def interface_problems(interfaces, functions):
    problems = []
    for each in interfaces:
        function = functions.get(each.name)
        where = f"{each.place}: {each.name}"
        if function is None:
            problems.append(f"{where}: no header declares it")
            continue
        if len(function.parameters) != len(each.arguments):
            problems.append(f"{where} has {len(each.arguments)} arguments, and {len(function.parameters)} in {function.header}")
            continue
        for (c, c_name), name in zip(function.parameters, each.arguments):
            fortran = each.kinds.get(name.lower())
            if c is None or fortran is None or not agrees(c, fortran):
                problems.append(f"{where}: argument {name} is not the {c_name} of {function.header}: Fortran {fortran}, C {c}")
            elif name.lower() != c_name.lower():
                problems.append(f"{where}: argument {name} has the place of {c_name} in {function.header}; give both one name")
        wanted, given = function.result, each.kinds.get((each.result or "").lower())
        if wanted == ("void", 0, False):
            good = each.result is None
        else:
            good = given is not None and (given[0] == "any" and wanted[1] == 1 or (given[0], 0) == (wanted[0], wanted[1]))
        if not good:
            problems.append(f"{where}: what it returns is not what {function.header} says: Fortran {given}, C {wanted}")
    return problems


def lacking(face, functions, called):
    """Compares the calls that a face makes with those of the public headers."""
    reasons = LACKS[face]
    missing = {each.name: each.header for each in functions.values() if each.name not in called and each.header not in PRIVATE}
    problems = [f"{header}: the {face} face lacks {name}; add it there, or to LACKS in tools/faces.py with the reason"
                for name, header in missing.items() if name not in reasons and header not in reasons]
    problems += [f"tools/faces.py: LACKS says that the {face} face lacks {each}, but it has it"
                 for each in reasons if each not in missing and each not in missing.values()]
    return problems


def problems():
    """Returns one line for each difference between the C headers and the faces in Fortran and C++."""
    functions = c_functions(HEADERS + PRIVATE)
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "bindings/fortran").rglob("*") if path.suffix in (".inc", ".F90"))
    interfaces, types = fortran_functions(files), fortran_types(files)
    cpp = "".join(without_comments(text_of(name)) for name in ("include/tailrace.hpp", *(str(path.relative_to(ROOT)) for path in
                                                                                        (ROOT / "include/tailrace").glob("*.hpp"))))
    if len(functions) < 190 or len(interfaces) < 110 or len(types) < len(TYPES):
        return [f"tools/faces.py finds {len(functions)} functions, {len(interfaces)} interfaces and {len(types)} types: fewer than there were; mend it"]
    return (interface_problems(interfaces, functions) + struct_problems(c_structs(HEADERS + PRIVATE), types) +
            lacking("C++", functions, {name for name in functions if re.search(rf"\b{name}\b", cpp)}) +
            lacking("Fortran", functions, {each.name for each in interfaces}))


if __name__ == "__main__":
    print("\n".join(problems()))
