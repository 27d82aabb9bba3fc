# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Unit tests of the translator of Fortran. Run by fortran_test.py in an environment that has fparser; by hand:
    PYTHONPATH=tools/dvm python -m unittest tests/dvm/fortran_cases.py
"""
import os
import random
import re
import time
import unittest
from pathlib import Path

from tailrace_dvm.diagnostics import TranslationError
from tailrace_dvm.fortran.text import linear, split, uses
from tailrace_dvm.fortran.translate import translate, translate_all

EXAMPLES = Path(os.environ.get("TEST_SOURCE", Path(__file__).resolve().parents[2])) / "examples/dvm/fortran"
HEAD = ["program p", "real a(10,10), b(10,10), s", "integer i, j, m(10)", "!DVM$ DISTRIBUTE a(BLOCK, BLOCK)",
        "!DVM$ ALIGN b(i, j) WITH a(i, j)"]
LOOP = ["do j = 2, 9", "do i = 2, 9", "{}", "end do", "end do"]


def program(*lines):
    return "\n".join([*HEAD, *lines, "end"]) + "\n"


def loop(directive, body):
    return program(directive, *(line.format(body) for line in LOOP))


class Texts(unittest.TestCase):
    def test_names_in_texts_and_numbers_are_no_uses(self):
        self.assertEqual([u.name for u in uses("x = 'a(1)' // y(1.e5, z%a) .and. 2d0")], ["x", "y", "z", "a"])
        self.assertEqual(split("a(1,2), 'x,y', [b, c]"), ["a(1,2)", "'x,y'", "[b, c]"])

    def test_linear_subscripts_are_told_from_others(self):
        self.assertEqual(linear("i - 1", "i"), ("1", "-1"))
        for text in ("f(i)", "i*i", "i/2", "i**2"):
            self.assertIsNone(linear(text, "i"), text)


class Translated(unittest.TestCase):
    def test_loops_are_cut_to_what_a_rank_owns(self):
        text = translate("p.f90", loop("!DVM$ PARALLEL (j, i) ON b(i, j), SHADOW_RENEW(a)", "b(i, j) = a(i-1, j)"))
        self.assertIn("call dvm_renew(dvmh_a, .false.)", text)
        self.assertIn("call dvm_span(dvmh_b, 2, 1, 0, dvml1, dvmu1)", text)
        self.assertIn("do j = max(2, dvml1), min(9, dvmu1)", text)
        self.assertIn("\nb(i, j) = a(i-1, j)\n", text)

    def test_lines_without_edits_stay_and_keep_their_numbers(self):
        source = program("   s   =  1 ! a remark, 'with a quote", "print *, s", "s = 2")
        text = translate("p.f90", source).split("\n")
        number, seen = 0, {}
        for line in text:
            marker = re.match(r'# (\d+) "p.f90"$', line)
            if marker:
                number = int(marker.group(1)) - 1
                continue
            number += 1
            seen.setdefault(number, []).append(line)
        for line, content in enumerate(source.split("\n")[:-1], 1):
            if content.startswith(("   s", "s =", "program", "integer")):
                self.assertIn(content, seen[line])

    def test_elements_outside_of_loops_are_sent_and_assigned_by_their_owner(self):
        text = translate("p.f90", program("a(1, 2) = b(m(1), 3) + 1"))
        self.assertIn("if (dvm_owns(dvmh_b, [int(m(1), 8), int(3, 8)])) dvmt1_real = b(m(1), 3)", text)
        self.assertIn("if (dvm_owns(dvmh_a, [int(1, 8), int(2, 8)])) a(1, 2) = dvmt1_real + 1", text)

    def test_remote_rows_come_from_a_buffer(self):
        text = translate("p.f90", loop("!DVM$ PARALLEL (j, i) ON a(i, j), REMOTE_ACCESS(b(1, :))", "a(i, j) = b(1, j)"))
        self.assertIn("a(i, j) = dvmb1(j)", text)

    def test_labels_of_loops_and_jumps_stay(self):
        text = translate("p.f", "      PROGRAM P\n      REAL A(9)\nCDVM$ DISTRIBUTE A(BLOCK)\n      DO 5 I = 1, 9\n"
                                "5     A(I) = I\n      GO TO 7\n7     PRINT *, A(1)\n      END\n")
        self.assertRegex(text, r"a\(I\) = I\n(# .*\n)?5     continue")
        self.assertRegex(text, r"7     continue\n")

    def test_programs_of_several_files_know_their_procedures(self):
        sub = "subroutine f(x)\nreal x(10, 10)\nx(1, 1) = 0\nend\n"
        with self.assertRaises(TranslationError) as caught:
            translate_all([("f.f90", sub), ("p.f90", program("call f(a)"))])
        self.assertIn("INHERIT x", caught.exception.text())

    def test_5000_lines_take_less_than_5_seconds(self):
        body = ["!DVM$ PARALLEL (j, i) ON b(i, j), SHADOW_RENEW(a)", "do j = 2, 9", "do i = 2, 9",
                "b(i, j) = (a(i-1, j) + a(i+1, j) + &", " a(i, j-1) + a(i, j+1)) / 4", "end do", "end do", "s = s + 1",
                "a(1, 1) = s", "print *, s"]
        before = time.process_time()
        translate("p.f90", program(*(body * 500)))
        self.assertLess(time.process_time() - before, 5)


class Refused(unittest.TestCase):
    def refused(self, source, text, line, column=None, name="p.f90"):
        with self.assertRaises(TranslationError) as caught:
            translate(name, source)
        error = caught.exception
        self.assertIn(text, error.text(source.split("\n")))
        self.assertEqual(error.place.line, line, error.text())
        if column is not None:
            self.assertEqual(error.place.column, column, error.text())

    def test_elements_that_may_lie_on_another_rank(self):
        on = "!DVM$ PARALLEL (j, i) ON a(i, j)"
        self.refused(loop(on, "a(i, j) = b(1, j)"), "cannot be seen to lie", 9, 11)
        self.refused(loop(on, "a(i, j) = b(i+2, j)"), "reaches 2 beyond", 9)
        self.refused(loop(on, "a(i, j) = b(j, i)"), "cannot be seen to lie", 9)
        self.refused(loop(on, "a(i+1, j) = 1"), "is assigned", 9)
        self.refused(loop(on, "a(i, j) = sum(b)"), "whole distributed array", 9)

    def test_corners_need_corner(self):
        on = "!DVM$ PARALLEL (j, i) ON a(i, j), SHADOW_RENEW(b{})"
        self.refused(loop(on.format(""), "a(i, j) = b(i+1, j-1)"), "CORNER", 9)
        translate("p.f90", loop(on.format("(CORNER)"), "a(i, j) = b(i+1, j-1)"))
        self.refused(loop("!DVM$ PARALLEL (j, i) ON a(i, j), ACROSS(a(1:1, 1:1))", "a(i, j) = a(i-1, j-1)"), "no corners", 9)

    def test_what_one_rank_would_do_alone(self):
        self.refused(program("read (5, nml=x)"), "namelist", 6)
        inner = ["contains", "function f(x)", "real f, x(10, 10)", "!DVM$ INHERIT x", "f = x(1, 1)", "end function"]
        self.refused(program("print *, f(a)", *inner), "all ranks have to call f", 6)
        self.refused(program("do while (a(1, 1) > 0)", "end do"), "DO WHILE", 6)

    def test_variables_that_would_differ_between_ranks(self):
        on = "!DVM$ PARALLEL (j, i) ON a(i, j)"
        self.refused(loop(on, "s = s + a(i, j)"), "neither PRIVATE nor a REDUCTION", 9)
        self.refused(loop(on, "m(i) = 1"), "not distributed", 9)
        self.refused(loop(on, "print *, i"), "PRINT stands inside", 9)

    def test_directives_that_are_wrong(self):
        for directive, text in (("FOO", "unknown"), ("PARALLEL", "expected '('"), ("PARALLEL (j, i) ON a(i, j), BAR(x)", "BAR"),
                                ("REDISTRIBUTE a(BLOCK, *)", "not DYNAMIC"), ("END REGION", "ends nothing"),
                                ("REGION", "has no END"), ("CP_SAVE x", "not declared"), ("IO_MODE (LOCAL)", "no OPEN"),
                                ("SHADOW_START g", "not declared"), ("PARALLEL (j) ON a(*, j)", "expected the loop")):
            self.refused(program("!DVM$ " + directive), text, 6)
        self.refused("program p\nreal a(9)\ncommon /c/ a\n!DVM$ DISTRIBUTE a(BLOCK)\nend\n", "COMMON", 4)
        self.refused("program p\nreal a(9)\n!DVM$ DISTRIBUTE a(BLOCK, BLOCK)\nend\n", "1 dimension", 3)
        self.refused("program p\n!DVM$ DISTRIBUTE a(BLOCK)\nend\n", "not declared", 2)

    def test_statements_that_are_cut(self):
        self.refused(program("a(1, 1 = 2"), "brackets", 6)
        self.refused(program("print *, 'abc"), "has no end", 6)
        self.refused(program("!DVM$ PARALLEL (j, i) ON a(i, j)", "do j = 1, 10", "do i = 1, 10"), "has no end", 7)


class Hostile(unittest.TestCase):
    def test_changed_examples_end_in_a_text_or_in_an_error_with_a_place(self):
        seed = int(os.environ.get("DVM_SEED", "1"))
        sources = sorted(path for path in EXAMPLES.iterdir() if path.suffix in (".f", ".f90"))
        self.assertTrue(sources)
        chance = random.Random(seed)
        for turn in range(int(os.environ.get("DVM_TURNS", "300"))):
            path = chance.choice(sources)
            text = self.changed(path.read_text(), chance)
            try:
                translate(path.name, text)
            except TranslationError as error:
                lines = len(text.split("\n"))
                self.assertTrue(1 <= error.place.line <= lines and error.place.column >= 1, f"{turn}: {error.text()}")
                self.assertNotIn("cannot be translated (", error.message, f"{turn}: {error.text()}\n{text}")

    @staticmethod
    def changed(text, chance):
        lines = text.split("\n")
        for _ in range(chance.randint(1, 3)):
            n = chance.randrange(len(lines))
            line = lines[n]
            at = chance.randrange(len(line) + 1)
            kind = chance.randrange(7)
            if kind == 0:
                lines[n] = line[:at]
            elif kind == 1:
                del lines[n]
                lines = lines or [""]
            elif kind == 2:
                lines[n] = line[:at] + chance.choice("()[]',:*&!%=\"\\\t\0;é$") + line[at:]
            elif kind == 3:
                lines[n] = line[:at] + line[at + chance.randint(1, 5):]
            elif kind == 4:
                other = chance.randrange(len(lines))
                lines[n], lines[other] = lines[other], lines[n]
            elif kind == 5:
                lines.insert(n, line)
            else:
                lines = lines[:n + 1]
        return "\n".join(lines)


if __name__ == "__main__":
    unittest.main()
