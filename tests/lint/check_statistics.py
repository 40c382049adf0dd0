#!/usr/bin/env python3
"""man/reactord.8 describes every statistic that the code logs, and no other.

In the code a line is a literal that begins with "stats KIND"; in the manual a kind is a `.Ss` of the section
STATISTICS, and a key an `.It Cm KEY , KEY` there. Reasons are the items of HOW CONNECTIONS END.
"""
import glob
import re
import sys

MANUAL = "man/reactord.8"
REASONS = "src/stats/session_reason.c"
# Where the kind of a line, or a part of it, is not in the literal.
KINDS = {
    "src/engine/loop_stats.c": "loop",
    "src/engine/histogram.c": "times",
    "src/stats/counters.c": "sessions",
}


def literals(path):
    """The string literals of a file, adjacent ones joined; N stands for a number in the middle."""
    text = open(path, encoding="utf-8").read()
    string = r'"(?:\\.|[^"\\])*"'
    for match in re.finditer(rf"{string}(?:\s*(?:PRI\w+\s*)?{string})*", text):
        joined = re.sub(r'%"\s*PRI\w+\s*"', "N", match[0])
        yield re.sub(r'"\s*(?:PRI\w+\s*)?"', "", joined).strip('"')


def written():
    """(kind, key) of each statistic that the code writes."""
    for path in glob.glob("src/**/*.c", recursive=True):
        for text in literals(path):
            kind = re.match(r"stats (\w+) .*=", text)
            if kind or text.startswith("stats %s ") or path.endswith("/histogram.c"):
                for key in re.findall(r"(\w+)=", text):
                    yield (kind[1] if kind else KINDS.get(path, path)), key


def section(name):
    text = open(MANUAL, encoding="utf-8").read()
    match = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh )", text, re.M | re.S)
    return match[1].splitlines() if match else []


def described():
    """(kind, key) of each statistic in the manual."""
    kind = None
    for line in section("STATISTICS"):
        if line.startswith(".Ss "):
            kind = line.split()[-1]
        elif line.startswith(".It Cm "):
            keys = re.sub(r" Ns (Ar|Cm) ", "", line[len(".It Cm "):])
            for key in keys.split(" , "):
                yield kind, key


def reasons_written():
    text = open(REASONS, encoding="utf-8").read()
    for name, words in re.findall(r'\[(SESSION_\w+)\] = "([^"]*)"', text):
        if name != "SESSION_OPEN":
            yield "reason", words


def reasons_described():
    for line in section("HOW CONNECTIONS END"):
        if line.startswith(".It "):
            for words in line[len(".It "):].split(" , "):
                yield "reason", words


def main():
    code = set(written()) | set(reasons_written())
    manual = set(described()) | set(reasons_described())
    for kind, key in sorted(code - manual):
        print(f"{MANUAL}: {kind}: {key} is not described")
    for kind, key in sorted(manual - code):
        print(f"{MANUAL}: {kind}: {key} is not written by any code")
    return code != manual


if __name__ == "__main__":
    sys.exit(main())
