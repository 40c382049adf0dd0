#!/usr/bin/env python3
"""Changes the program by one small fault at a time, and shows which faults no test notices.

    make mutate FILE=src/net/splice.c [COUNT=20] [SEED=1]
    make mutate LAYER=net [COUNT=30] [SEED=1] [MUTATE_GOAL=85]

Each fault, a mutant, is built and tested outside the source tree; see README.md here. One line is printed for each, and at the
end the share that a test has killed. The exit code is 0 when that share reaches the goal.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sandbox
from coverage import Coverage
from operators import mutations_of
from themes import themes_of
from workspace import Build, Mutant

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:hard_rss_limit_mb=2048", "UBSAN_OPTIONS": "halt_on_error=1",
              "CK_TIMEOUT_MULTIPLIER": "3"}
THEME_LIMIT_S = 240


class Covering:
    """Finds the first test that a mutant fails: unit tests, the same under sanitizers, stress tests, integration."""

    def __init__(self, directory, arguments):
        self.directory, self.arguments = directory, arguments
        self.plain = self._build("plain")
        self.coverage = Coverage(self._build("coverage"), directory, arguments.jobs)
        self.sanitized = None
        self.kills = {}  # how often each test has killed
        self.unmutated = {}  # by name of a test: did it pass unmutated

    def killer(self, mutant, source, mutation):
        """The name of the test that fails, or None: the mutant survives."""
        tests = self._order(source, self.coverage.tests_of(source, mutation.first, mutation.last))
        killer = self._unit_tests(mutant, self.plain, tests, {})
        if killer:
            return killer
        if tests and self._get_sanitized() and mutant.compile(self.sanitized):
            killer = self._unit_tests(mutant, self.sanitized, tests, SANITIZERS)
            if killer:
                return killer + " (sanitized)"
        if self.arguments.unit_only:
            return None
        return self._stress(mutant) or self._integration(mutant, source)

    def _get_sanitized(self):
        if self.sanitized is None:
            self.sanitized = self._build("sanitized")
        return self.sanitized

    def _build(self, name):
        print(f"build: {name}", flush=True)
        return Build(TREE, self.directory, name, self.arguments.layer, self.arguments.jobs)

    def _order(self, source, tests):
        """First the source's own tests, then those that kill, then those of its layer; short ones first."""
        stem, layer = Path(source).stem, Path(source).parent.name

        def key(test):
            name = Path(test).name.removeprefix("test_")
            own = stem.startswith(name) or name.startswith(f"{stem}_")
            return (not own, -self.kills.get(test, 0), Path(test).parent.name != layer, self.coverage.seconds(test))
        return sorted(tests, key=key)

    def _unit_tests(self, mutant, build, tests, environment):
        """The first test that fails mutated but not unmutated. Failing means twice, or above the time limit."""
        slower = 4 if environment else 1

        def starter(test, program):
            return lambda: sandbox.Process([program(test)], slower * (10 + 4 * self.coverage.seconds(test)), TREE,
                                           environment=environment, sanitized=bool(environment))

        waiting = [(test, starter(test, lambda test: mutant.link(build, test))) for test in tests]
        while failed := sandbox.run_until_failure(waiting, self.arguments.jobs):
            test, outcome, start = failed
            if _is_failure(outcome, start) and self._passes_unmutated(
                    f"{build.name} {test}", starter(test, lambda test: build.directory / test)):
                self.kills[test] = self.kills.get(test, 0) + 1
                return f"{test}, {outcome.result}" if outcome.result == sandbox.LATE else test
            waiting = [entry for entry in waiting if entry[0] != test]
        return None

    def _passes_unmutated(self, name, start):
        if name not in self.unmutated:
            failed = sandbox.run_until_failure([(name, start)], 1)
            self.unmutated[name] = not (failed and _is_failure(failed[1], start))
            if not self.unmutated[name]:
                print(f"{name} fails unmutated, left out", flush=True)
        return self.unmutated[name]

    def _stress(self, mutant):
        """Stress tests that have the object and pass unmutated."""
        for name in self.plain.stress:
            if self._has_object(name, mutant.name) and self._fails(name, mutant, name, lambda program: [program]):
                return name
        return None

    def _has_object(self, program, source):
        """True when a program of the build has the object: it knows one of its functions."""
        names = {line.split()[-1] for line in _nm(self.plain.object_of(source), "--defined-only", "--extern-only")}
        return any(line.split()[-1] in names - {"main"}
                   for line in _nm(self.plain.directory / program, "--defined-only"))

    def _integration(self, mutant, source):
        program, other = ("reactorctl", "reactord") if source.startswith("src/ctl/") else ("reactord", "reactorctl")
        mutant.copy(self.plain, other)
        for theme in themes_of(source):
            run = ["python3", HERE.parent / "integration/run.py", "--jobs", 4, "-k", f"{theme}:", "--reactord"]
            if self._fails(theme, mutant, program, lambda path, run=run: run + [path.with_name("reactord")]):
                return f"integration {theme}"
        return None

    def _fails(self, name, mutant, program, command):
        """True when a command of a program fails twice, but not with the unmutated program."""
        mutated = mutant.link(self.plain, program)
        for _ in range(2):
            if self._passes(mutated, command):
                return False
        if name not in self.unmutated:
            shutil.copy(self.plain.directory / program, mutated)
            self.unmutated[name] = self._passes(mutated, command)
            if not self.unmutated[name]:
                print(f"{name} fails unmutated, left out", flush=True)
        return self.unmutated[name]

    def _passes(self, program, command):
        # Tests change the mode of the program, so that other users can run it.
        outcome = sandbox.run(command(program), THEME_LIMIT_S, TREE, writable=program.parent)
        return outcome.result == sandbox.PASSED


def _is_failure(outcome, start):
    """True above the time limit, and when it fails again: what fails once may have failed by chance."""
    return outcome.result == sandbox.LATE or sandbox.run_until_failure([("again", start)], 1) is not None


def _nm(path, *options):
    shown = subprocess.run(["nm", *options, path], check=True, capture_output=True, text=True)
    return [line for line in shown.stdout.splitlines() if line]


def choose(sources, count, seed):
    """The mutations to try, of (name, text): the same for the same seed and sources."""
    everything = [(name, text, mutation) for name, text in sources for mutation in mutations_of(text)]
    chosen = everything
    if 0 < count < len(everything):
        chosen = random.Random(f"{seed}").sample(everything, count)
    return sorted(chosen, key=lambda entry: (entry[0], entry[2].start))


def try_mutation(covering, directory, name, text, mutation):
    """What became of a mutant: not built, equivalent, survived, or killed by TEST."""
    mutant = Mutant(directory, name, mutation.apply(text))
    try:
        mutated = mutant.compile(covering.plain)
        if mutated is None:
            return "not built"
        if mutated.read_bytes() == covering.plain.object_of(name).read_bytes():
            return "equivalent"
        killer = covering.killer(mutant, name, mutation)
        return f"killed by {killer}" if killer else "survived"
    finally:
        mutant.remove()


def report(results, goal):
    """Print the share and the survivors; the exit code."""
    killed = sum(result.startswith("killed") for _, result in results)
    survivors = [line for line, result in results if result == "survived"]
    counted = killed + len(survivors)
    share = 100 * killed / counted if counted else 100
    print(f"\nmutate: {killed} of {counted} killed, {share:.1f} % (goal {goal} %); "
          f"{len(results) - counted} not built or equivalent")
    print("".join(f"survived: {line}\n" for line in survivors), end="")
    return 0 if share >= goal else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description="mutation tests")
    parser.add_argument("--file", default="", help="the source to mutate")
    parser.add_argument("--layer", default="", help="a folder of src: its sources")
    parser.add_argument("--line", type=int, default=0, help="only mutations of this line")
    parser.add_argument("--count", type=int, default=20, help="mutants, chosen at random; 0: all (%(default)s)")
    parser.add_argument("--seed", default="1", help="of the choice (%(default)s)")
    parser.add_argument("--goal", type=float, default=85, help="percent to be killed (%(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="tests at a time (%(default)s)")
    parser.add_argument("--directory", default="/var/tmp/reactord-mutate", help="for builds (%(default)s)")
    parser.add_argument("--unit-only", action="store_true", help="unit tests only")
    parser.add_argument("--list", action="store_true", help="print the mutants, build none")
    arguments = parser.parse_args()
    if bool(arguments.file) == bool(arguments.layer):
        parser.error("name one of FILE and LAYER")
    return arguments


def main():
    arguments = parse_arguments()
    paths = [TREE / arguments.file] if arguments.file else sorted((TREE / "src" / arguments.layer).glob("*.c"))
    arguments.layer = paths[0].parent.name
    sources = [(str(path.relative_to(TREE)), path.read_text()) for path in paths]
    chosen = choose(sources, 0 if arguments.line else arguments.count, arguments.seed)
    if arguments.line:
        chosen = [entry for entry in chosen if entry[2].line == arguments.line]
    if not chosen:
        sys.exit("mutate: nothing to mutate")
    os.chdir(TREE)
    os.nice(5)
    directory = Path(arguments.directory).resolve()
    covering = None if arguments.list else Covering(directory, arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=directory if covering else None) as mutants:
        for name, text, mutation in chosen:
            line = f"{name}:{mutation.line} {mutation.describe(text)}"
            result = try_mutation(covering, Path(mutants, "mutant"), name, text, mutation) if covering else "chosen"
            results.append((line, result))
            print(f"{line}: {result}", flush=True)
    return report(results, arguments.goal) if covering else 0


if __name__ == "__main__":
    sys.exit(main())
