#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The tree that `cmake --install` leaves, used from where it was moved to.
. "$(dirname "$0")/checks.sh"

rm -rf first moved
try "cmake --install" cmake --install "$TEST_BUILD" --prefix "$PWD/first"
mv first moved
prefix=$PWD/moved

for name in include/tailrace.h include/tailrace.hpp include/tailrace.inc include/tailrace/fortran/tailrace.mod \
  include/tailrace/fortran/tailrace.F90; do
  test -f "$prefix/$name" || fail "$name is not installed"
done

# Pages: each link of README and of what it links to leads somewhere.
python3 - "$prefix" <<'PY' || fail "installed pages have dead links"
import pathlib, re, sys
pages = list(pathlib.Path(sys.argv[1]).rglob("*.md"))
dead = [f"{page}: {target}" for page in pages for target in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()]
print("\n".join(dead))
front = [page for page in pages if page.name == "README.md" and (page.parent / "docs").is_dir()]
sys.exit(bool(dead) or len(front) != 1 or len(pages) < 50)
PY

# Symbols: the C face and nothing else.
library=$(find "$prefix" -name 'libtailrace.so')
others=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^tr_[a-z_]*$')
test -z "$others" || fail "$library also exports: $(echo "$others" | head -5)"
nm -D --defined-only "$library" | grep -q ' T tr_init$' || fail "$library does not export tr_init"
declared=$(grep -o '\btr_[a-z_]*(' "$prefix/include/tailrace.h" | tr -d '(' | sort -u)
missing=$(comm -13 <(nm -D --defined-only "$library" | awk '{print $3}' | sort) <(echo "$declared") | grep -v '^$')
for name in $missing; do
  grep -q "^TR_API .*\b$name(" "$prefix/include/tailrace.h" && fail "tailrace.h declares $name, $library lacks it"
done
fortran=$(find "$prefix" -name 'libtailrace_fortran.so')
if [ -n "$fortran" ]; then
  # The names of DONIO are what its programs call.
  others=$(nm -D --defined-only "$fortran" | awk '{print $3}' | grep -Ev '^(__tailrace_(donio_)?MOD_|__.*_tailrace_|trf?_|do(nio|open|lsize|lseek|read|write|flush|close|gsync)_$)')
  test -z "$others" || fail "$fortran also exports: $(echo "$others" | head -5)"
  # Both change together: a program must not come to run with the one of another version.
  soversion() { readelf -d "$1" | sed -n 's/.*SONAME.*\.so\.\([0-9.]*\)\]$/\1/p'; }
  test -n "$(soversion "$library")" || fail "$library has no version in its SONAME"
  test "$(soversion "$library")" = "$(soversion "$fortran")" || fail "the two libraries differ in the version of their SONAMEs"
fi

builds_with_cmake "$prefix"
builds_with_pkg_config "$prefix"

# The installed Fortran source serves compilers whose .mod files differ.
mkdir -p own_module && try "the installed Fortran source compiles" env -C own_module $TEST_MPIFORT -c \
  "$prefix/include/tailrace/fortran/tailrace.F90" -o tailrace_module.o

if [ -x "$prefix/bin/tailrace" ]; then try "the installed command runs" "$prefix/bin/tailrace" --help; fi
if [ -n "$(find "$prefix" -name 'libtailrace_preload.so')" ]; then
  try "the installed command preloads" "$prefix/bin/tailrace" run --shared "$PWD/preloaded.bin" -- sh -c 'echo shared > preloaded.bin'
  test "$(cat preloaded.bin)" = shared || fail "the installed command did not run a program"
fi

if [ -f "$prefix/share/tailrace/dvm/tools.json" ]; then
  # The translator needs a parser of PyPI (the test dvm_command has it): here only its paths are looked at.
  try "the translator is installed" "$prefix/bin/tailrace" dvm --help
  python3 -c 'import json, os, sys
place = os.path.dirname(sys.argv[1])
told = json.load(open(sys.argv[1]))
missing = [each for each in told["libraries"] + told["modules"] if not os.path.exists(os.path.join(place, each))]
sys.exit(f"tools.json names {missing}" if missing else 0)' "$prefix/share/tailrace/dvm/tools.json" || fail "the translator's libraries are not installed"
  test -f "$prefix/include/tailrace/fortran/tailrace_dvm.mod" || fail "tailrace_dvm.mod is not installed"
fi

# The other MPI is refused when configuring, in words.
other=mpich
test "$TEST_MPI" = mpich && other=openmpi
if command -v "mpicc.$other" >/dev/null; then
  rm -rf wrong
  if cmake -S "$here/consumer" -B wrong -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DMPI_C_COMPILER="mpicc.$other" \
    -DMPI_CXX_COMPILER="mpicxx.$other" -DMPI_Fortran_COMPILER="mpifort.$other" >wrong.log 2>&1; then
    fail "a project with $other accepts a tailrace built for $TEST_MPI"
  fi
  tr -s " \n" " " <wrong.log | grep -q "was built for $TEST_MPI, this project uses $other" || { fail "the refusal does not say why"; tail -n 20 wrong.log; }
fi
rm -rf moved consumer wrong own_module written
exit $((failures > 0))
