#!/usr/bin/env python3
"""src/engine/README.md is true: the functions, files and tests that its items name exist."""
import pathlib
import re
import sys

TABLE = "src/engine/README.md"
ITEM = re.compile(r"^- \*\*(.+?)\*\*:(.*?)(?=^- \*\*|^#|^\S|\Z)", re.M | re.S)
WORD = re.compile(r"`([^`]+)`")


def text_of(folder, pattern):
    return "\n".join(path.read_text() for path in pathlib.Path(folder).rglob(pattern))


def main():
    tests = text_of("tests", "*.c") + text_of("tests", "*.py")
    sources = text_of("src", "*.[ch]")
    names = set(re.findall(r"TEST\w*\(\w+,\s*(\w+)[,)]", tests))
    files = {str(path.relative_to(folder)) for folder in ("tests", "tests/unit", "src")
             for path in pathlib.Path(folder).rglob("*") if path.is_file()}
    files |= {path.split("/")[-1] for path in files}
    items = ITEM.findall(pathlib.Path(TABLE).read_text())
    problems = []
    for name, text in items:
        text, _, shown_by = text.partition("\n  Tests: ")
        _, _, where = text.partition("\n  Where: ")
        for word in WORD.findall(where):
            if word not in files and not re.search(rf"\b{re.escape(word)}\(", sources):
                problems.append(f"{TABLE}: {name}: there is no {word}")
        for word in WORD.findall(shown_by):
            if word not in files and word not in names:
                problems.append(f"{TABLE}: {name}: there is no test {word}")
    if not items:
        problems.append(f"{TABLE}: no item was found")
    print("\n".join(problems) if problems else f"design: {len(items)} behaviours, all of it exists")
    return 1 if problems else 0


sys.exit(main())
