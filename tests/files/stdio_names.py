# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checks that under <tailrace/stdio.h>, in any dialect of C and in C++, no function of <stdio.h> that works on a file reaches the
C library, where each rank would have a file of its own. Leaves out functions of POSIX that take a FILE pointer: the
compiler reports them. Arguments: the compiler, its options."""
import re
import subprocess
import sys

memory_alone = {"snprintf", "sprintf", "sscanf", "vsnprintf", "vsprintf", "vsscanf", "asprintf", "vasprintf"}
posix_names = {"ctermid", "dprintf", "vdprintf", "renameat", "tempnam", "tmpnam_r", "popen", "fmemopen", "fdopen", "open_memstream"}
compile_c = sys.argv[1:]
wide_names = {"wprintf", "wscanf", "vwprintf", "vwscanf", "getwchar", "putwchar"}
failed = False
c_names = set()


def preprocessed(dialect, text):
    language = "c++" if "++" in dialect else "c"
    command = [*compile_c, f"-std={dialect}", "-E", "-P", "-x", language, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def declared(text):
    """Returns the names of functions without a FILE among their parameters, and those with one."""
    found = re.findall(r"\bextern\s+[^;{}()]*?\b(\w+)\s*\(([^;{}]*)\)[^;{}]*;", text)
    with_file = {name for name, parameters in found if re.search(r"\bFILE\b", parameters)}
    return {name for name, _ in found} - with_file, with_file


for dialect in ("c99", "c11", "c17", "gnu99", "gnu11", "gnu17", "c++11", "gnu++17"):
    without, with_file = declared(preprocessed(dialect, "#include <stdio.h>\n"))
    # C99 alone declares nothing else: there all names count.
    names = without | (with_file if dialect in ("c99", "c11", "c17") else set())
    if "++" in dialect:
        # Declarations lead these two to the library (tests/files/call_sites.c), and the compiler always has the names of POSIX.
        names = {name for name in names if name in c_names} - {"remove", "rename"}
    else:
        c_names |= names
    names = {name for name in names if not name.startswith("_")} - memory_alone - posix_names | wide_names
    lines = "\n".join(f'"{name}" {name}' for name in sorted(names))
    after = preprocessed(dialect, f"#include <tailrace/stdio.h>\n{lines}\n")
    left = [name for name, now in re.findall(r'^"(\w+)" (\w+)$', after, re.M) if not now.startswith("tr_")]
    if len(names) < 10 or left:
        print(f"FAILED: -std={dialect}: of {len(names)} names these are the C library's: {', '.join(left)}")
        failed = True
sys.exit(failed)
