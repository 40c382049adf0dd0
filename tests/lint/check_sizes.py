#!/usr/bin/env python3
"""Limits of size: files under 450 lines, functions of at most 80, and of at most 5 parameters. Prints the median."""
import pathlib
import re
import statistics
import sys

MAX_FILE, MAX_FUNCTION, MAX_PARAMETERS = 450, 80, 5
START = re.compile(r"^(?:[\w*]+[ *]+)+?\**(\w+)\(([^;{}]*)\)\n\{\n", re.M)


def parameters(text):
    text = text.strip()
    return 0 if text in ("", "void") else text.count(",") + 1


def functions(text):
    for match in START.finditer(text):
        end = text.index("\n}\n", match.start())
        yield match.group(1), parameters(match.group(2)), text.count("\n", match.start(), end) + 1


def main():
    problems, lengths = [], []
    for path in sorted(pathlib.Path("src").rglob("*.[ch]")):
        text = path.read_text()
        lines = text.count("\n")
        if lines >= MAX_FILE:
            problems.append(f"{path}: {lines} lines")
        for name, count, length in functions(text):
            lengths.append(length)
            if length > MAX_FUNCTION:
                problems.append(f"{path}: {name}() has {length} lines")
            if count > MAX_PARAMETERS:
                problems.append(f"{path}: {name}() has {count} parameters")
    if not lengths:
        problems.append("no function was found")
    else:
        p90 = statistics.quantiles(lengths, n=10)[-1]
        print(f"sizes: {len(lengths)} functions, median {statistics.median(lengths):.0f} lines, "
              f"p90 {p90:.0f}, longest {max(lengths)}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


sys.exit(main())
