"""Which unit test runs which line, and how long each takes unmutated: the tests run once with gcov's counters."""
import json
import os
import subprocess
import time
from pathlib import Path

import sandbox

BASE_LIMIT_S = 300


class Coverage:
    """What each unit test covers. Kept in directory; a test that was built anew is run anew."""

    def __init__(self, build, directory, jobs):
        self.build, self.directory = build, directory / "covered"
        self.results = self._load()
        self._run_all(jobs)
        self.tests = [test for test in build.tests if self.results.get(test, {}).get("passed")]
        self.failed = [test for test in build.tests if test not in self.tests]
        self.lines = {}

    def _load(self):
        try:
            return json.loads((self.directory / "results.json").read_text())
        except FileNotFoundError:
            return {}

    def _is_current(self, test):
        built = os.stat(self.build.directory / test).st_mtime
        return test in self.results and self.results[test]["built"] == built and self.results[test]["passed"]

    def _run_all(self, jobs):
        waiting = [test for test in self.build.tests if not self._is_current(test)]
        if waiting:
            print(f"coverage: {len(waiting)} unit tests run once unmutated", flush=True)
        running = []
        while waiting or running:
            while waiting and len(running) < jobs:
                test = waiting.pop(0)
                running.append((test, self._start(test)))
            for entry in list(running):
                outcome = entry[1].poll()
                if outcome is not None:
                    running.remove(entry)
                    self._note(entry[0], outcome)
            time.sleep(0.01)
        if self.directory.exists():
            (self.directory / "results.json").write_text(json.dumps(self.results))

    def _start(self, test):
        counts = self.directory / test
        subprocess.run(["rm", "-rf", counts], check=True)
        counts.mkdir(parents=True)
        return sandbox.Process([self.build.directory / test], BASE_LIMIT_S, self.build.tree, writable=counts,
                               environment={"GCOV_PREFIX": str(counts), "CK_TIMEOUT_MULTIPLIER": "5"})

    def _note(self, test, outcome):
        passed = outcome.result == sandbox.PASSED
        self.results[test] = {"built": os.stat(self.build.directory / test).st_mtime, "passed": passed,
                              "seconds": outcome.seconds}
        if not passed:
            print(f"coverage: {test}: {outcome.result} unmutated, left out\n{outcome.output[-1500:]}", flush=True)

    def seconds(self, test):
        return self.results[test]["seconds"]

    def _lines_of(self, source, test):
        """{line: count} of a source in a test, or None when the test does not link it."""
        counts = self.directory / test / str(self.build.directory)[1:] / source
        data, notes = counts.with_suffix(".gcda"), counts.with_suffix(".gcno")
        if not data.exists():
            return None
        if not notes.is_symlink():
            notes.symlink_to(self.build.object_of(source).with_suffix(".gcno"))
        shown = subprocess.run(["gcov", "-t", "-j", data], cwd=self.build.tree, check=True, capture_output=True)
        lines = {}
        for entry in json.loads(shown.stdout)["files"]:
            if entry["file"].endswith(source):
                for line in entry["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
        return lines

    def _has_functions(self, source):
        if not self.build.object_of(source).exists():
            return True  # a main.c: no unit test links it
        shown = subprocess.run(["nm", "--defined-only", self.build.object_of(source)], check=True, capture_output=True, text=True)
        return any(line.split()[1] in "tT" and "gcov" not in line and "_sub_" not in line
                   for line in shown.stdout.splitlines())

    def tests_of(self, source, first, last):
        """The tests that run a line from first to last; every test that has the source, when these are no code; those of
        its layer for a source without functions, which has no counters.
        """
        if source not in self.lines:
            self.lines[source] = {test: lines for test in self.tests
                                  if (lines := self._lines_of(source, test)) is not None}
        found = self.lines[source]
        if not found and not self._has_functions(source):
            return [test for test in self.tests if Path(test).parent.name == Path(source).parent.name]
        if not any(number in lines for lines in found.values() for number in range(first, last + 1)):
            return [test for test, lines in found.items() if not lines or any(lines.values())]
        return [test for test, lines in found.items() if any(lines.get(at) for at in range(first, last + 1))]
