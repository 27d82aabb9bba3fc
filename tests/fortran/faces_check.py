# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The comparison of the faces (tools/faces.py) finds each kind of difference that a changed header or interface can make."""
import os
import sys
from pathlib import Path

SOURCE = Path(os.environ["TEST_SOURCE"])
sys.path.insert(0, str(SOURCE / "tools"))
import faces  # noqa: E402

PARTS = "bindings/fortran/parts/"
SHARED, CALLS = PARTS + "shared_interface.inc", PARTS + "c_interface.inc"
CHANGES = [
    ("a shorter integer", SHARED, "integer(c_int64_t), value :: bytes, offset", "integer(c_int), value :: bytes, offset"),
    ("no value", SHARED, "integer(c_int64_t), value :: offset", "integer(c_int64_t) :: offset"),
    ("another order", SHARED, "(file, offset, whence, position)", "(file, whence, offset, position)"),
    ("another order of arguments of one kind", SHARED, "(file, data, bytes, offset, got)", "(file, data, offset, bytes, got)"),
    ("another order in C", "include/tailrace/shared.h", "int64_t bytes, int64_t offset, int64_t* got", "int64_t offset, int64_t bytes, int64_t* got"),
    ("an argument less", SHARED, "(file, offset, whence, position)", "(file, offset, whence)"),
    ("a constant that C changes", SHARED, "integer(c_int64_t), intent(inout) :: position", "integer(c_int64_t), intent(in) :: position"),
    ("a pointer for a pointer to one", CALLS, "type(c_ptr), intent(inout) :: layout", "type(c_ptr), value :: layout"),
    ("another array", CALLS, "integer(c_int), intent(in) :: grid(*)", "integer(c_int64_t), intent(in) :: grid(*)"),
    ("another result", CALLS, "type(c_ptr) :: text", "integer(c_int) :: text"),
    ("a function that is not there", CALLS, "name='tr_progress'", "name='tr_progres'"),
    ("a call that no face has", "include/tailrace.h", "TR_API int tr_progress(void);", "TR_API int tr_progress(void); TR_API int tr_new(int a);"),
    ("another type in C", "include/tailrace/shared.h", "int64_t offset, int64_t* got", "int offset, int64_t* got"),
    ("a shorter member", PARTS + "files_types.inc", "integer(c_int64_t)", "integer(c_int)"),
    ("a component of another name", PARTS + "checkpoints_types.inc", "    integer(c_int) :: type = 0\n", "    integer(c_int) :: kind = 0\n"),
    ("a component less", PARTS + "checkpoints_types.inc", "    integer(c_int) :: type = 0\n", ""),
    ("a pointer for a function", PARTS + "encoders_types.inc", "type(c_funptr)", "type(c_ptr)"),
]

failures = [f"as they are: {each}" for each in faces.problems()]
as_it_is = faces.text_of
for what, name, old, new in CHANGES:
    text = as_it_is(name)
    if old not in text:
        failures.append(f"{what}: {name} has no '{old}' any more; choose another place")
        continue
    faces.text_of = lambda asked: text.replace(old, new, 1) if asked == name else as_it_is(asked)
    if not faces.problems():
        failures.append(f"{what} in {name} is not found")
faces.text_of = as_it_is
for each in failures:
    print(f"FAILED: {each}", flush=True)
sys.exit(1 if failures else 0)
