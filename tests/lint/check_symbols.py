#!/usr/bin/env python3
"""File name = symbol prefix: what src/net/channel.c defines begins with `channel_`, static functions too.

A part of a module, such as channel_write.c of channel.h, may use the prefix of the module.

Usage: check_symbols.py BUILD
"""
import pathlib
import re
import subprocess
import sys

STATIC = re.compile(r"^static [^;={}()]*?(?:\([\d, ]+\)+ )?(\w+)\(", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def exported(path):
    text = subprocess.run(["nm", "--defined-only", "-g", "-P", path], check=True, capture_output=True,
                          text=True).stdout
    return [line.split()[0] for line in text.splitlines() if line]


def prefixes(path):
    """`channel_write`, and `channel` if there is a channel.h beside it."""
    words = path.stem.split("_")
    for n in range(len(words), 0, -1):
        name = "_".join(words[:n])
        if n == len(words) or path.with_name(name + ".h").exists():
            yield name


def statics(source):
    """The names of its static functions. main.c is a program and no module."""
    names = STATIC.findall(COMMENT.sub("", source.read_text()))
    return [n for n in names if n.islower() and not n.startswith("_") and source.name != "main.c"]


def is_of(path, name):
    """A static function may also begin with the first words of the file's name: `option_`."""
    words = path.stem.split("_")
    heads = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
    return any(name == head or name.startswith(head + "_") for head in heads)


def main():
    build = pathlib.Path(sys.argv[1]) / "src"
    problems, count = [], 0
    for path in sorted(build.rglob("*.o")):
        name = str(path.relative_to(build).with_suffix(""))
        if not pathlib.Path("src", name + ".c").exists():
            continue  # left over from a file that is gone
        allowed = list(prefixes(pathlib.Path("src", name + ".c")))
        for symbol in exported(path):
            count += 1
            if not any(symbol == prefix or symbol.startswith(prefix + "_") for prefix in allowed):
                problems.append(f"src/{name}.c: {symbol} does not begin with {path.stem}_")
    for path in sorted(pathlib.Path("src").rglob("*.c")):
        for name in statics(path):
            count += 1
            if not is_of(path, name):
                problems.append(f"{path}: {name}() does not begin with {path.stem}_")
    if count == 0:
        problems.append(f"no object files below {build}")
    print("\n".join(problems) if problems else f"symbols: {count} carry the name of their file")
    return 1 if problems else 0


sys.exit(main())
