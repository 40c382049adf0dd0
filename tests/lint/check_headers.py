#!/usr/bin/env python3
"""Every function that a header declares is described there: a comment names it as `name(`. "Thread:" says which thread
may call it; without that, any may, in OF_MAIN only main, and so that is never said."""
import pathlib
import re
import sys

# Folders of the main thread.
OF_MAIN = {"daemon", "upgrade", "reload", "log", "system"}

BLOCK = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"^(?!typedef|#|\s|return|struct \w+ \{)[\w ]+?[ *]+(\w+)\(", re.M)


def check(path, text):
    problems = []
    described = "\n".join(BLOCK.findall(text))
    code = BLOCK.sub("", text)
    code = re.sub(r"^\s*#.*?(?<!\\)$", "", code, flags=re.M | re.S)
    names = [n for n in FUNCTION.findall(code) if n.islower() and not n.startswith("_")]
    for name in names:
        if f"{name}(" not in described:
            problems.append(f"{path}: {name}() has no block")
    usual = "main" if path.parent.name in OF_MAIN else "any"
    problems += [f"{path}: \"Thread: {usual}\" goes without saying"
                 for _ in re.findall(rf"Thread: +{usual}(?: \*/)?$", text, re.M)]
    return len(names), problems


def main():
    problems, count = [], 0
    for path in sorted(pathlib.Path("src").rglob("*.h")):
        n, found = check(path, path.read_text())
        count += n
        problems += found
    if count == 0:
        problems.append("no function was found in a header")
    print("\n".join(problems) if problems else f"headers: {count} functions are described")
    return 1 if problems else 0


sys.exit(main())
