#!/usr/bin/env python3
"""The operators on small sources, the choice by seed, and which failures count."""
import contextlib
import io
import types
import unittest
from pathlib import Path
from unittest import mock

import sandbox
from mutate import Covering, choose
from operators import mutations_of
from themes import themes_of


def function(*lines):
    return "int f(int a)\n{\n    " + "\n    ".join(lines) + "\n}\n"


def changes(source):
    """{(operator, before, after)} of a source."""
    return {(found.operator, source[found.start:found.end], found.after) for found in mutations_of(source)}


class Operators(unittest.TestCase):
    def test_every_operator_is_found(self):
        for lines, expected in [
            (["if (a)", "    g();"], ("negate", "(a)", "(!(a))")),
            (["while (a)", "    g();"], ("negate", "(a)", "(!(a))")),
            (["return a < b;"], ("<", "<", "<=")),
            (["return a >= b;"], (">=", ">=", ">")),
            (["return a == b;"], ("==", "==", "!=")),
            (["return a && b;"], ("&&", "&&", "||")),
            (["return a + b;"], ("+", "+", "-")),
            (["return (a) - b;"], ("-", "-", "+")),
            (["g(a);"], ("drop statement", "g(a);", ";")),
            (["(void)g(a);"], ("drop statement", "(void)g(a);", ";")),
            (["a->b = 7;"], ("drop statement", "a->b = 7;", ";")),
            (["a++;"], ("drop statement", "a++;", ";")),
            (["return -1;"], ("return", "return -1;", "return 0;")),
            (["return true;"], ("return", "return true;", "return false;")),
            (["return -EINVAL;"], ("return", "return -EINVAL;", "return 0;")),
            (["return a * 0x0fu;"], ("constant", "0x0fu", "0x10u")),
            (["if (a)", "    g();", "else", "    h();"], ("drop else", "else\n    h();", "")),
            (["switch (a) {", "case 1:", "    break;", "}"], ("skip break", "break;", ";")),
        ]:
            with self.subTest(lines=lines):
                self.assertIn(expected, changes(function(*lines).replace("\n        ", "\n    ")))

    def test_comments_strings_and_preprocessor_lines_stay(self):
        source = ("/* a < b && c == 1 */\n#define LIMIT (1 + \\\n    2)\n#if 1 < 2\n#endif\n"
                  + function('const char *s = "a < 1 && b"; // a + 1', "char c = '<';"))
        self.assertEqual(changes(source), set())

    def test_assertions_logs_and_enumerations_stay(self):
        source = "enum { A = 1, B = A + 2 };\n" + function(
            "MUST(a > 0 && b == 1);", 'log_warning("x %d", a + 1);', "static_assert(sizeof(int) == 4);")
        self.assertEqual(changes(source), set())

    def test_signs_declarations_and_array_sizes_stay(self):
        source = function("char text[16];", "struct s *p = (struct s *)-b;", "struct s zero = {0};", "g(-b, (size_t)-b);")
        self.assertEqual({operator for operator, _, _ in changes(source)}, {"drop statement"})

    def test_a_mutation_keeps_the_lines_of_the_source(self):
        source = function("if (a) {", "    g(a,", "      b);", "} else {", "    h();", "}", "return 0;")
        for found in mutations_of(source):
            self.assertEqual(found.apply(source).count("\n"), source.count("\n"))
            self.assertNotEqual(found.apply(source), source)

    def test_the_lines_of_a_mutation_are_those_of_its_statement(self):
        source = function("g(a,", "  b + 1);")
        plus = next(found for found in mutations_of(source) if found.operator == "+")
        self.assertEqual((plus.line, plus.first, plus.last), (4, 3, 4))

    def test_an_else_that_only_logs_stays(self):
        source = function("if (a)", "    g();", "else", '    log_info("b");')
        self.assertNotIn("drop else", {operator for operator, _, _ in changes(source)})


class Choice(unittest.TestCase):
    SOURCES = [("src/net/x.c", function(*[f"g(a + {number});" for number in range(50)]))]

    def test_the_same_seed_gives_the_same_mutants(self):
        self.assertEqual(choose(self.SOURCES, 10, "1"), choose(self.SOURCES, 10, "1"))
        self.assertNotEqual(choose(self.SOURCES, 10, "1"), choose(self.SOURCES, 10, "2"))

    def test_a_count_of_zero_chooses_all(self):
        self.assertEqual(len(choose(self.SOURCES, 0, "1")), len(mutations_of(self.SOURCES[0][1])))

    def test_the_longest_name_decides_which_themes_cover_a_source(self):
        self.assertEqual(themes_of("src/net/splice.c"), ["splice"])
        self.assertEqual(themes_of("src/net/handler.c"), ["echo", "proxy", "ends"])


class Kills(unittest.TestCase):
    """Programs that fail are those named "broken"."""

    def killer(self, build, mutated):
        class Process:
            def __init__(self, command, *_, **__):
                self.result = sandbox.FAILED if Path(command[0]).parent.name == "broken" else sandbox.PASSED

            def poll(self):
                return sandbox.Outcome(self.result, 0.0, "")

        covering = Covering.__new__(Covering)
        covering.arguments = types.SimpleNamespace(jobs=1)
        covering.coverage = types.SimpleNamespace(seconds=lambda test: 0)
        covering.kills, covering.unmutated = {}, {}
        mutant = types.SimpleNamespace(link=lambda build, test: Path(mutated[test], test))
        built = types.SimpleNamespace(name="sanitized", directory=Path(build))
        with mock.patch("sandbox.Process", Process), contextlib.redirect_stdout(io.StringIO()) as told:
            return covering._unit_tests(mutant, built, sorted(mutated), {}), told.getvalue()

    def test_a_failure_kills(self):
        self.assertEqual(self.killer("whole", {"a": "whole", "b": "broken"}), ("b", ""))
        self.assertEqual(self.killer("whole", {"a": "whole", "b": "whole"}), (None, ""))

    def test_a_test_that_fails_unmutated_is_left_out(self):
        self.assertEqual(self.killer("broken", {"a": "broken"}), (None, "sanitized a fails unmutated, left out\n"))


if __name__ == "__main__":
    unittest.main()
