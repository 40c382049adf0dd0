#!/usr/bin/env python3
"""DESIGN.md is true: the tests that its tables name exist, and so do the functions and files."""
import pathlib
import re
import sys

ROW = re.compile(r"^\| [\d, to]+ \|.*\|(.*)\|(.*)\|$", re.M)
WORD = re.compile(r"`([^`]+)`")


def text_of(folder, pattern):
    return "\n".join(path.read_text() for path in pathlib.Path(folder).rglob(pattern))


def main():
    tests = text_of("tests", "*.c") + text_of("tests", "*.py")
    sources = text_of("src", "*.[ch]")
    names = set(re.findall(r"START_TEST\((\w+)\)", tests))
    files = {str(path.relative_to(folder)) for folder in ("tests", "tests/unit", "src")
             for path in pathlib.Path(folder).rglob("*") if path.is_file()}
    files |= {path.split("/")[-1] for path in files}
    rows = ROW.findall(pathlib.Path("DESIGN.md").read_text())
    problems = []
    for where, shown_by in rows:
        for word in WORD.findall(where):
            if word not in files and not re.search(rf"\b{re.escape(word)}\(", sources):
                problems.append(f"DESIGN.md: there is no {word}")
        for word in WORD.findall(shown_by):
            if word not in files and word not in names:
                problems.append(f"DESIGN.md: there is no test {word}")
    if not rows:
        problems.append("DESIGN.md: no table was found")
    print("\n".join(problems) if problems else f"design: {len(rows)} rows, all of it exists")
    return 1 if problems else 0


sys.exit(main())
