#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The C++ and the Fortran face have every call of the C headers that they mirror."""
import os
import re
import sys
from pathlib import Path

SOURCE = Path(os.environ["TEST_SOURCE"])
HEADERS = ("tailrace.h", "tailrace/checkpoints.h", "tailrace/encoders.h", "tailrace/global.h", "tailrace/shared.h")
# Calls for which one face has another way, and names that C alone keeps.
OTHER_WAYS = {"C++": {"tr_layout_coordinates_array", "tr_record_key"},
              "Fortran": {"tr_layout_coordinates", "tr_encoded_room", "tr_encoded_used"}}


def calls_of(header):
    return re.findall(r"^TR_API [^;(]*?\b(tr_\w+)\(", (SOURCE / "include" / header).read_text(), re.M)


def without_handle_kind(call):
    """tr_x_f is tr_x with Fortran's handle of a communicator."""
    return call.removesuffix("_f")


def text_of(*patterns):
    return "\n".join(path.read_text() for pattern in patterns for path in sorted(SOURCE.glob(pattern)))


def main():
    named = {"C++": set(re.findall(r"\b(tr_\w+)\(", text_of("include/tailrace.hpp", "include/tailrace/*.hpp"))),
             "Fortran": set(re.findall(r"bind\(c, name='(tr_\w+)'\)", text_of("bindings/fortran/*.F90", "bindings/fortran/parts/*.inc")))}
    missing = []
    for header in HEADERS:
        calls = calls_of(header)
        if len(calls) < 5:
            sys.exit(f"FAILED: found {len(calls)} calls in {header}: is TR_API gone?")
        for face, names in named.items():
            there = {without_handle_kind(name) for name in names} | OTHER_WAYS[face]
            missing += [f"{call} of {header} is not in the {face} face" for call in calls if without_handle_kind(call) not in there]
    if missing:
        sys.exit("FAILED:\n" + "\n".join(missing))


if __name__ == "__main__":
    main()
