#!/usr/bin/env python3
"""The house in figures: how much there is to read, in which folders, and what includes itself in a circle.

A module is a .c with its .h and its _internal.h. With --check, says only which limits are broken.
"""
import pathlib
import re
import statistics
import sys

from check_layers import INCLUDE
from check_sizes import functions

MAX_FOLDER = 5500
# Longer folders; when they shrink, so does their limit.
LONG_FOLDERS = {
    "config": 5750,
    "ctl": 5990,
    "engine": 7400,
    "net": 9490,
    "option": 7260,
    "server": 6370,
    "service": 7155,
    "sessions": 5620,
    "stats": 5680,
    "tls": 7430,
}
MAX_HEADER_PERCENT = 27
MAX_CIRCLE, MAX_IN_CIRCLES = 7, 40

BLOCK = re.compile(r"^/\*.*?\*/$", re.M | re.S)
NAMES_FUNCTION = re.compile(r"\A/\*\s*(?:\* )?\w+\([\w, .]*\)[ :/]")

# Measured the same way: reactord at e6f576c9 and two well-kept programs.
OTHERS = [("libuv", "30.7k", 17, "212/1181/2750", "13/56/310"), ("pgbouncer", "43.6k", 16, "729/1838/2721", "17/63/291")]


def read(src):
    return {str(path.relative_to(src)): path.read_text() for path in sorted(src.rglob("*.[ch]"))}


def lines(text):
    return text.count("\n")


def module_of(name):
    return name.rsplit(".", 1)[0].removesuffix("_internal")


def graph_of(files):
    graph = {}
    for name, text in files.items():
        module = module_of(name)
        used = graph.setdefault(module, set())
        used |= {module_of(to) for _, to in INCLUDE.findall(text) if to in files} - {module}
    return graph


def reachable(graph, start):
    found, todo = set(), [start]
    while todo:
        for to in graph[todo.pop()] - found:
            found.add(to)
            todo.append(to)
    return found


def circles_of(graph):
    """Sets of modules that include each other, the largest first."""
    reach = {module: reachable(graph, module) for module in graph}
    circles = {frozenset(other for other in reach[module] if module in reach[other]) for module in graph}
    return sorted((circle for circle in circles if circle), key=lambda c: (-len(c), sorted(c)))


def spread(values):
    return f"{statistics.median(values):.0f}/{statistics.quantiles(values, n=10)[-1]:.0f}/{max(values)}"


def folders_of(files):
    folders = {}
    for name, text in files.items():
        folder = name.split("/")[0]
        folders[folder] = folders.get(folder, 0) + lines(text)
    return folders


def header_percent(files):
    headers = sum(lines(text) for name, text in files.items() if name.endswith(".h"))
    return 100 * headers / sum(map(lines, files.values()))


def problems_of(files, circles):
    problems = []
    for folder, size in folders_of(files).items():
        limit = LONG_FOLDERS.get(folder, MAX_FOLDER)
        if size > limit:
            problems.append(f"src/{folder}: {size} lines, at most {limit}")
    if header_percent(files) > MAX_HEADER_PERCENT:
        problems.append(f"headers: {header_percent(files):.1f} % of src, at most {MAX_HEADER_PERCENT} %")
    for circle in circles:
        if len(circle) > MAX_CIRCLE:
            problems.append(f"circle of {len(circle)} modules, at most {MAX_CIRCLE}: {' '.join(sorted(circle))}")
    n = sum(map(len, circles))
    if n > MAX_IN_CIRCLES:
        problems.append(f"{n} modules in circles, at most {MAX_IN_CIRCLES}")
    return problems


def show(files, graph, circles):
    sources = [lines(text) for name, text in files.items() if name.endswith(".c")]
    lengths = [n for name, text in files.items() if name.endswith(".c") for _, _, n in functions(text)]
    blocks = [lines(block) + 1 for name, text in files.items() if name.endswith(".h")
              for block in BLOCK.findall(text) if NAMES_FUNCTION.match(block)]
    total = sum(map(lines, files.values()))
    print(f"{'':10} {'lines':>7} {'headers':>8} {'.c median/p90/max':>18} {'functions median/p90/max':>25}")
    row = "{:10} {:>7} {:>7.1f}% {:>18} {:>25}"
    print(row.format("reactord", total, header_percent(files), spread(sources), spread(lengths)))
    for other in OTHERS:
        print(row.format(*other))
    print(f"blocks of functions: {len(blocks)}, {sum(blocks)} lines")
    print("folders: " + ", ".join(f"{folder} {size}" for folder, size in folders_of(files).items()))
    print(f"modules: {len(graph)}, of them {sum(map(len, circles))} in circles, the largest of "
          f"{len(circles[0]) if circles else 0}")
    for circle in circles:
        print(f"  {len(circle):3}  {' '.join(sorted(circle))}")


def main():
    files = read(pathlib.Path("src"))
    graph = graph_of(files)
    circles = circles_of(graph)
    if "--check" not in sys.argv:
        show(files, graph, circles)
        return 0
    problems = problems_of(files, circles)
    if not files:
        problems.append("no source was found")
    print("\n".join(problems) if problems else f"house: {len(graph)} modules in {len(folders_of(files))} folders "
          "keep the limits")
    return 1 if problems else 0


sys.exit(main())
