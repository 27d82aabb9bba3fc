# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Streams that a description makes: the bytes of streams that the program makes itself, other output with another description and the same program, and
errors of descriptions, which are the same on every rank and those of `tailrace plan --streams`."""
import array
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

BASE = "base=2026-03-01T00:00Z"
STEPS = 7
DESCRIPTION = """# What the model writes.
fields:
  temperature: {units: K, standard_name: air_temperature}
  mask: {keys: {centre: 98}}  # GRIB alone: other formats leave it out
streams:
  history:
    file: DIR/history_{lead:03h}.nc
    every: 2h
    attributes:
      title: |
        a history, of 2 h
    fields:
      - temperature
      - {name: wind, as: u, units: m/s, information: 0.9, accuracy: auto}
      - mask
      - {name: wind, as: u_mean, over: "mean:levels,x"}
  means:
    file: DIR/means.nc
    format: cdf2
    interval: 3h
    fields: [{name: temperature, as: t_mean, operation: mean}, {name: temperature, as: t_max, operation: maximum, long_name: the most}, energy]
"""


def write(path, text):
    with open(path, "w", errors="surrogateescape") as file:
        file.write(text)
    return path


def contents(directory):
    found = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".nc"):
            with open(f"{directory}/{name}", "rb") as file:
                found[name] = file.read()
    return found


def errors(ranks, what):
    """Returns the errors that all ranks got, in their order."""
    told = []
    for rank in range(ranks):
        with open(f"errors.{rank}") as file:
            told.append(file.read().splitlines())
        os.remove(f"errors.{rank}")
    check(all(each == told[0] for each in told), f"{what}: ranks have other errors: {told}")
    return told[0]


# The same bytes, whoever makes the streams.
fresh("own")
for name in os.listdir("."):
    if name.startswith("state."):
        os.remove(name)
code, out, err = run(1, [MODEL, "own", "own", str(STEPS)], TAILRACE_SERVERS="0")
check(code == 0, f"streams of the program's own: {out}{err}")
expected = contents("own")
check(sorted(expected) == ["history_000.nc", "history_002.nc", "history_004.nc", "history_006.nc", "means.nc"], f"files {sorted(expected)}")
for number, (ranks, servers) in enumerate(((1, 0), (3, 0), (4, 1))):
    fresh("a")
    write("output.yaml", DESCRIPTION.replace("DIR", "a"))
    code, out, err = run(ranks, [MODEL, "output.yaml", BASE, str(STEPS), *(["open"] if number == 1 else [])], TAILRACE_SERVERS=str(servers))
    check(code == 0 and "wind was wanted in 4 of 7 steps" in out, f"{ranks} ranks, {servers} servers: {out}{err}")
    check(contents("a") == expected, f"{ranks} ranks, {servers} servers: the files differ")

# A run that stops between two steps of a file, within an interval, and goes on with other ranks. A description that is refused first (its last stream
# cannot be made) leaves the checkpoint's streams and their files as they are.
fresh("a")
write("output.yaml", DESCRIPTION.replace("DIR", "a"))
write("half.yaml", DESCRIPTION.replace("DIR", "a").replace("    fields", "    ready: .ready\n    fields") + "  last:\n    file: half.yaml/c.nc\n    fields: [energy]\n")
for ranks, servers, steps in ((3, 1, 5), (2, 0, STEPS)):
    code, out, err = run(ranks, [MODEL, "output.yaml", BASE, str(steps), "goes_on"], TAILRACE_SERVERS=str(servers))
    check(code == 0, f"a run of {steps} steps that goes on: {out}{err}")
check(contents("a") == expected, "the files of a run that goes on differ")
check(not any(name.endswith(".ready") for name in os.listdir("a")), f"a refused description announces files: {os.listdir('a')}")

# Another description for a run that goes on: an error names the field that the file lacks, a warning the file that nobody finishes. Nothing is told of
# attributes that stay as they are.
GONE = DESCRIPTION[:DESCRIPTION.index("  means:")]
MORE = DESCRIPTION.replace("fields: [{name: temperature, as: t_mean", "fields: [{name: energy, as: before}, {name: temperature, as: t_mean")
for description, fails, said in ((DESCRIPTION, False, ""), (GONE, False, "a/means.nc stays unfinished, with 1 step; `tailrace repair a/means.nc`"),
                                 (MORE, True, "a/means.nc.trx: was begun without field 'before'")):
    fresh("a")
    for steps, text, how in ((4, DESCRIPTION, "killed"), (STEPS, description, "goes_on")):
        for name in os.listdir("."):
            if steps == 4 and name.startswith("state."):
                os.remove(name)
        write("output.yaml", text.replace("DIR", "a"))
        code, out, err = run(2, [MODEL, "output.yaml", BASE, str(steps), how], TAILRACE_SERVERS="0")
    check((code != 0) == fails and said in out + err and "keeps the attributes" not in err and ("stays unfinished" in err) == ("stays unfinished" in said),
          f"another description, in which '{said}': {code}: {out}{err}")

# A field that is added to a stream whose files follow one another: the file that goes on has none of its puts.
for ranks, servers in ((2, 0), (3, 1)):
    fresh("a")
    for name in os.listdir("."):
        if name.startswith("state."):
            os.remove(name)
    for steps, text, how in ((4, DESCRIPTION, "killed"), (STEPS, MORE, "goes_on")):
        write("output.yaml", text.replace("DIR/means.nc", "DIR/means_{valid:%Y%m%d}.nc").replace("DIR", "a"))
        code, out, err = run(ranks, [MODEL, "output.yaml", BASE, str(steps), how], TAILRACE_SERVERS=str(servers))
    check(code == 0, f"a description with a field more: {out}{err}")
    check(contents("a") == {name.replace("means", "means_20260301"): bytes for name, bytes in expected.items()}, f"a description with a field more: {sorted(contents('a'))}")

# A field that the program defines behind a step: it begins with the next file of a stream that waits for it. The field of a program that never defines it is named at the end.
LATER = DESCRIPTION.replace("      - mask\n", "      - mask\n      - {name: late, later: true}\n")
fresh("own")
code, out, err = run(1, [MODEL, "own", "own", str(STEPS), "adds"], TAILRACE_SERVERS="0")
added = contents("own")
check(code == 0 and [name for name in added if added[name] != expected[name]] == ["history_004.nc", "history_006.nc"], f"a field is added without a description: {sorted(added)}: {out}{err}")
for ranks, servers in ((2, 0), (4, 1), (5, 2)):
    fresh("a")
    write("output.yaml", LATER.replace("DIR", "a"))
    code, out, err = run(ranks, [MODEL, "output.yaml", BASE, str(STEPS), "adds"], TAILRACE_SERVERS=str(servers))
    check(code == 0 and contents("a") == added, f"a field is added with a description, {ranks} ranks, {servers} servers: {out}{err}")
fresh("a")
code, out, err = run(3, [MODEL, "output.yaml", BASE, str(STEPS)], TAILRACE_SERVERS="1")
check(code == 0 and contents("a") == expected and 'output.yaml:16:9: the program has never defined the field "late"' in err, f"a field that never comes: {out}{err}")
code, out, err = run(3, [MODEL, "output.yaml", BASE, str(STEPS), "addsinside"], TAILRACE_SERVERS="1")
told = [each for each in errors(2, "a definition within a step") if "tr_stream_define" in each]
check(code == 1 and len(told) == 1 and "inside of a step: call it behind tr_stream_end" in told[0], f"a definition within a step: {told}: {out}{err}")
# Fields of which none has time: their file is written at the close, unless the program lacks one of them.
ALONE = "streams:\n  grid:\n    file: b/grid.nc\n    fields: [mask]\n"
fresh("b")
write("alone.yaml", ALONE)
code, out, err = run(3, [MODEL, "alone.yaml", BASE, str(STEPS)], TAILRACE_SERVERS="1")
first = contents("b")
check(code == 0 and list(first) == ["grid.nc"] and b"mask" in first["grid.nc"] and b"time" not in first["grid.nc"], f"a stream without time: {sorted(first)}: {out}{err}")
fresh("b")
code, out, err = run(2, [MODEL, "alone.yaml", BASE, "0"], TAILRACE_SERVERS="0")
check(code == 0 and contents("b") == first, f"a stream without time, and no step: {out}{err}")
fresh("b")
write("alone.yaml", ALONE.replace("[mask]", "[mask, humidity]"))
code, out, err = run(2, [MODEL, "alone.yaml", BASE, "0"], TAILRACE_SERVERS="0")
told = errors(2, "a stream without time, and without a field")
check(code == 1 and not contents("b") and any('has the field "humidity", which the program did not define' in each for each in told), f"a stream without time that lacks a field: {told}: {out}{err}")
# What other streams lack is no matter of theirs, and a put of their fields in a step is an error of the step.
for steps, how, fails in (("0", "", False), (str(STEPS), "twice", True)):
    fresh("b")
    write("alone.yaml", ALONE + f"  other:\n    file: b/other.nc\n    fields: [{'temperature' if fails else 'humidity'}]\n")
    code, out, err = run(2, [MODEL, "alone.yaml", BASE, steps, *([how] if how else [])], TAILRACE_SERVERS="0")
    told = [each for each in errors(2, f"a stream without time beside another, {how}") if "tr_stream_put" in each] if fails else []
    check(code == fails and contents("b")["grid.nc"] == first["grid.nc"], f"a stream without time beside another, {how}: {sorted(contents('b'))}: {out}{err}")
    check(not fails or len(told) == 1 and "the field has time=none: it is put once" in told[0], f"a mask in a step: {told}: {out}{err}")

# Another description, with a format that takes no attributes, and none of the streams.
fresh("b")
write("other.yaml", "streams:\n  wind:\n    file: b/wind.nc\n    base: 2026-03-01T00:00Z\n    fields: [{name: wind, attributes: 'long_name=\"from the west\"'}]\n  raw:\n    file: b/t.raw\n    format: raw\n    base: 2026-03-01T00:00Z\n    fields: [temperature]\n"
      "  coarse:\n    file: b/coarse.raw\n    base: 2026-03-01T00:00Z\n    format: raw\n    fields: [{name: wind, section: ['::2', '1::3']}]\n")
code, out, err = run(3, [MODEL, "other.yaml", "", str(STEPS)], TAILRACE_SERVERS="1")
check(code == 0 and "wanted in 7 of 7" in out and list(contents("b")) == ["wind.nc"] and b"from the west" in contents("b")["wind.nc"], f"another description: {out}{err}")
with open("b/coarse.raw", "rb") as file:
    found = array.array("f", file.read())
expected_coarse = [10 * level + step + 0.1 * (6 * y + x) for step in range(STEPS) for level in (0, 1) for y in (0, 2) for x in (1, 4)]
check(len(found) == len(expected_coarse) and all(abs(one - other) < 1e-4 for one, other in zip(found, expected_coarse)), f"a section: {list(found)}")
write("nothing.yaml", "streams: {}\n")
code, out, err = run(2, [MODEL, "nothing.yaml", BASE, str(STEPS), "unknown"], TAILRACE_SERVERS="0")
told = errors(2, "no streams")
check(code == 1 and "wanted in 0 of 7" in out and len(told) == 1 and "tr_stream_close" in told[0] and "no such field" in told[0], f"no streams: {told}: {out}{err}")

# An example takes the name of a file or a description.
if len(sys.argv) > 2:
    fresh("slice")
    for file in ("slice.nc", os.path.join(os.environ["TEST_SOURCE"], "examples/slice/output.yaml")):
        code, out, err = run(3, [os.path.abspath(sys.argv[2]), file, "10"], launcher=("-wdir", "slice"), TAILRACE_SERVERS="1")
        check(code == 0, f"slice {file}: {out}{err}")
    files = contents("slice")
    check(sorted(files) == ["described.nc", "slice.nc", "wind.nc"] and files["described.nc"] == files["slice.nc"] and b"along the slice" in files["wind.nc"], f"slice: {sorted(files)}")

# Errors of the program.
write("missing.yaml", DESCRIPTION.replace("DIR", "b").replace("- temperature", "- temperature\n      - {name: humidty}"))
for servers in (0, 1):
    fresh("b")
    code, out, err = run(2 + servers, [MODEL, "missing.yaml", BASE, "1"], TAILRACE_SERVERS=str(servers))
    told = errors(2, "a field that the program lacks")
    check(code == 1 and len(told) == 1 and 'missing.yaml:14:9: stream history has the field "humidty", which the program did not define before its first step; it has '
          "diagnostic, energy, mask, temperature, wind" in told[0], f"a field that the program lacks: {out}{err}")
    check(not contents("b"), f"files of an incomplete program: {os.listdir('b')}")
    write("output.yaml", DESCRIPTION.replace("DIR", "b"))
    code, out, err = run(2 + servers, [MODEL, "output.yaml", BASE, str(STEPS), "unknown"], TAILRACE_SERVERS=str(servers))
    told = errors(2, "a put of no field")
    check(code == 1 and len(told) == 1 and "tr_stream_put('temperture'): no such field was defined; the nearest is 'temperature'" in told[0], f"a put of no field: {out}{err}")
    files = contents("b")
    check(all(files.get(name) == expected[name] for name in expected if name != "means.nc"), f"a put of no field fails a stream that has no such step: {sorted(files)}")
write("again.yaml", DESCRIPTION.replace("DIR", "b").replace("      - mask\n", "      - mask\n      - late\n").replace(", energy]", ", energy, {name: late, operation: mean}]"))
code, out, err = run(2, [MODEL, "again.yaml", BASE, "1", "again"], TAILRACE_SERVERS="0")
told = errors(2, "misuse")
check("late is not taken" not in out, f"half of a definition stays: {told}")
for text in ("again.yaml:22:", "field 'temperature' is defined already", "expected key=value", "no layout was given", "there is no field 'nothing'", "are written (tr_streams_configure)", "event 7"):
    check(any(text in each for each in told), f"misuse: no error says {text}: {told}")

# Errors of descriptions. Each is (text, what the error says).
STREAM = "streams:\n  a:\n    file: b/a.nc\n    fields: [temperature]\n"
bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
many = "x: " + "&x {" + ", ".join(f"n{i}: {'v' * 100}" for i in range(100)) + "}\n"
WRONG = {
    "syntax": ("streams:\n  a: [b\n", "syntax.yaml:3:1: "),
    "tab": ("streams:\n\ta: b\n", "tab.yaml:2:3: illegal map value: the text is no YAML (blanks indent lines, no tabs"),
    "empty": ("", "the file says nothing"),
    "two": (STREAM + "---\n" + STREAM, "there are two documents"),
    "list": ("- a\n", "list.yaml:1:1: a description is a map"),
    "no_streams": ("fields: {}\n", "streams: is missing"),
    "top": ("stream: {}\n", 'top.yaml:1:1: unknown key "stream" (did you mean "streams"?); the keys of a description are streams, fields'),
    "key": (STREAM + "    compres: none\n", 'key.yaml:5:5: unknown key "compres" (did you mean "compress"?); the keys of a stream are file, fields, every, format, '),
    "value": (STREAM + "    existing: replce\n", 'value.yaml:5:5: stream "b/a.nc": existing=replce: '),
    "format": (STREAM + "    packing: ccsds\n", "format.yaml:5:5: "),
    "type": (STREAM + "    format: {a: b}\n", "type.yaml:5:5: format: has one value, no list and no map"),
    "null": (STREAM + "    ready:\n", "null.yaml:5:5: ready: has no value"),
    "twice": (STREAM + STREAM[9:], 'twice.yaml:5:3: "a" is given twice, first in line 2'),
    "same_file": (STREAM + STREAM[9:].replace("a:", "b:"), 'same_file.yaml:6:5: stream a, line 2, writes "b/a.nc" already'),
    "no_file": ("streams:\n  a:\n    fields: [temperature]\n", "no_file.yaml:2:3: stream a: file: is missing"),
    "no_fields": ("streams:\n  a:\n    file: b/a.nc\n", "no_fields.yaml:2:3: stream a: fields: is missing"),
    "fields": ("streams:\n  a:\n    file: b/a.nc\n    fields: {temperature: {}}\n", "fields.yaml:4:5: fields: is a list"),
    "field_key": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, unit: K}]\n", 'field_key.yaml:4:24: unknown key "unit" (did you mean "units"?)'),
    "field_twice": ("streams:\n  a:\n    file: b/a.nc\n    fields: [t, t]\n", "field_twice.yaml:4:17: the stream has a field \"t\" already"),
    "later": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, later: true}]\n", "later.yaml:4:14: later: a field that comes behind the first step begins with the next file, and stream a has one"),
    "later_value": ("streams:\n  a:\n    file: b/a{lead:03h}.nc\n    fields: [{name: t, later: soon}]\n", 'later_value.yaml:4:24: later: is true, for a field'),
    "weights": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, weights: area}]\n", "weights.yaml:4:24: "),
    "levels": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, levels: surface}]\n", "levels.yaml:4:24: levels: says what the program's array is"),
    "field_every": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, every: 1d}]\n", "field_every.yaml:4:24: every: is of a stream"),
    "operation": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, operation: mean}]\n", "operation.yaml:4:24: operation: is over the steps of an interval"),
    "bits": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, bits: many}]\n", "bits.yaml:4:24: "),
    "section": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, section: '::0'}]\n", "section.yaml:4:24: stream a: field \"t\": section=::0: the stride"),
    "share": ("streams:\n  a:\n    file: b/a.nc\n    fields: [{name: t, information: 0.9}]\n", "share.yaml:4:24: "),
    "shared": (STREAM + "fields:\n  temperature: {bits: many}\n", "shared.yaml:6:17: "),
    "every": (STREAM + "    every: often\n", "every.yaml:5:5: every: "),
    "every_model": (STREAM + "    time: model\n    every: 10\n", "every_model.yaml:6:5: every: chooses steps by their leads, and a stream with time=model has none: leave every: out"),
    "base": (STREAM + "    base: 2025-01-01T00:00Z\n", "base.yaml:5:5: the program gives base=2026-03-01T00:00Z"),
    "pattern": (STREAM.replace("a.nc", "{lad}.nc"), "pattern.yaml:3:5: "),
    "attributes": (STREAM + "    attributes: title=a b\n", "attributes.yaml:5:5: "),
    "bomb": (bomb + STREAM, 'bomb.yaml:1:1: unknown key "a"'),
    "aliases": (many.replace("x: &x", "streams:\n  a:\n    file: b/a.nc\n    attributes: &x") + "    fields:\n" + "".join(f"      - {{name: f{i}, attributes: *x}}\n" for i in range(900)),
                "has more than 8 MiB"),
    "wide": (STREAM + "    attributes: {" + ", ".join(f"k{i}: v" for i in range(80000)) + "}\n", "wide.yaml:5:5: attributes: has more than 16 KiB"),
    "deep": ("streams: " + "[" * 100000 + "\n", "deep in one another"),
    "control": (STREAM + '    attributes: {title: "a\\x01b"}\n', "control.yaml:5:18: title: has a control character"),
    "control_key": (STREAM + '    attributes: {"a\\0b": c}\n', "control_key.yaml:5:18: a name in attributes: has a control character"),
    "line_end": (STREAM.replace("b/a.nc", '"b/a\\n.nc"'), "line_end.yaml:3:5: file: has a line end"),
    "utf8": (STREAM + "    attributes: {title: Z\udcfcrich}\n", "utf8.yaml:5:1: the line is not UTF-8"),
    "much": ("streams:\n  a:\n    file: b/a.nc\n    fields:\n" + "".join(f"      - {{name: t, as: t{i}}}\n" for i in range(700)) + f"fields:\n  t: {{long_name: {'x' * 15000}}}\n", "have more than 8 MiB"),
    "ends": (STREAM + "    every: 3h\n    interval: 2h\n", "ends.yaml:5:5: every: the stream has no step at lead 7200 s, where an interval of 7200 s ends"),
    "large": ("# " + "x" * 10_000_000 + "\n" + STREAM, "large.yaml: the file has more than 1 MiB"),
    "half": (STREAM + STREAM[9:].replace("a:", "b:", 1).replace("b/a.nc", "half.yaml/c.nc"), "stream b"),
}
os.makedirs("wrong", exist_ok=True)
fresh("b")
os.chdir("wrong")
os.makedirs("b", exist_ok=True)
names = [os.path.basename(write(f"{name}.yaml", text)) for name, (text, _) in WRONG.items()] + ["absent.yaml", "."]
for ranks, servers in ((3, 0), (3, 1)):
    code, out, err = run(ranks, [MODEL, "wrong", *names], TAILRACE_SERVERS=str(servers))
    told = errors(ranks - servers, "wrong descriptions")
    check(code == 1 and "takes" not in out and len(told) == len(names), f"wrong descriptions: {len(told)} errors of {len(names)}: {out}{err}")
    for name, each in zip(names, told):
        said = WRONG.get(name.removesuffix(".yaml"), (None, "No such file" if name != "." else "read .: "))[1]
        check(said in each and each.startswith(f'tr_streams_configure("{name}"'), f"{name}: no error says {said}: {each[:400]}")
check(os.listdir("b") == [] or not contents("b"), f"files of wrong descriptions: {os.listdir('b')}")
if COMMAND:
    for name, each in zip(names, told):
        if name == "half.yaml":
            continue
        ended = subprocess.run([COMMAND, "plan", "--streams", name, "--given", BASE], capture_output=True, text=True)
        text = each.split('Z"): ', 1)[1]
        check(ended.returncode != 0 and text in ended.stderr, f"{name}: the plan says {ended.stderr[:400]}, the library {text[:400]}")
    os.chdir("..")
    write("output.yaml", DESCRIPTION.replace("DIR", "a"))
    ended = subprocess.run([COMMAND, "plan", "--streams", "output.yaml", "--given", BASE], capture_output=True, text=True)
    for text in ("history (line 6): cdf5, a step every 2h\n  files, the first is a/history_000.nc\n", "means (line 17): cdf2, each step of the program, over intervals of 10800 s\n  one file, a/means.nc\n",
                 "  - temperature  attributes=\"units=K, standard_name=air_temperature\"\n", "  - u            the program's wind, attributes=units=m/s accuracy=auto information=0.9\n", "output.yaml: 2 streams\n"):
        check(ended.returncode == 0 and text in ended.stdout, f"the plan has no {text!r}: {ended.stdout}{ended.stderr}")
    write("ends.yaml", STREAM.replace("a.nc", "{lead:03h}.nc") + "    interval: 6h\n")
    ended = subprocess.run([COMMAND, "plan", "--streams", "ends.yaml", "--given", BASE], capture_output=True, text=True)
    check("files, the first is b/006.nc\n" in ended.stdout, f"the first file of means: {ended.stdout}{ended.stderr}")
    write("model.yaml", STREAM + "    format: grib2\n")
    ended = subprocess.run([COMMAND, "plan", "--streams", "model.yaml", "--given", "time=model"], capture_output=True, text=True)
    check(ended.returncode != 0 and "model.yaml:2:3: stream a: GRIB2 counts times from a date" in ended.stderr, f"the plan of GRIB2 with time=model: {ended.stdout}{ended.stderr}")
    ended = subprocess.run([COMMAND, "plan"], capture_output=True, text=True)
    check(ended.returncode == 2 and "--ranks or --streams" in ended.stderr, f"a plan of nothing: {ended.stderr}")
finish()
