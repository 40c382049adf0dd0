#!/usr/bin/env python3
"""Built programs are hardened: what their flags promise is in the files.

PIE, full RELRO, no executable stack, no writable code, no search path for libraries, stack protector, FORTIFY and, on
x86-64, CET. CET is asked of each object: the linker drops its mark from a program, because Debian's crt1.o has none.

Usage: check_hardening.py [--fortify] BUILD; --fortify: the programs must call checked functions, such as __memcpy_chk.
"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("reactord", "reactorctl")
# What the output of readelf for a program must say, and what it must not say.
HAS = [("PIE", r"Type: +DYN"), ("PIE", r"FLAGS_1\) +Flags:.* PIE"), ("RELRO", r"GNU_RELRO "), ("BIND_NOW", r"\) +BIND_NOW|Flags: NOW"),
       ("a stack that is not executable", r"GNU_STACK (?: *0x\w+)+ RW "), ("stack protector", r" __stack_chk_fail\b")]
LACKS = [("a segment that is writable and executable", r"LOAD (?: *0x\w+)+ RWE "), ("relocations in code", r"\(TEXTREL\)|TEXTREL$"),
         ("a search path for libraries", r"\(R(?:UN)?PATH\)")]
FORTIFIED = ("FORTIFY", r" __\w+_chk\b(?<!__stack_chk)")
CET = "x86 feature: IBT, SHSTK"


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], check=True, capture_output=True, text=True,
                          env={"LC_ALL": "C"}).stdout


def problems_of_program(path, has):
    text = readelf("-hld", "--dyn-syms", path)
    yield from (f"{path}: lacks {name}" for name, pattern in has if not re.search(pattern, text, re.M))
    yield from (f"{path}: has {name}" for name, pattern in LACKS if re.search(pattern, text, re.M))


def objects_of(build):
    """Those of today's sources: others are left over from files that are gone."""
    for path in sorted((build / "src").rglob("*.o")):
        if pathlib.Path("src", path.relative_to(build / "src")).with_suffix(".c").exists():
            yield path


def problems_of_objects(objects):
    if "X86-64" not in readelf("-h", objects[0]):
        return
    for part in readelf("-n", *objects).split("\nFile: ")[1:]:
        if CET not in part:
            yield f"{part.splitlines()[0]}: lacks CET"


def main():
    fortify = sys.argv[1] == "--fortify"
    build = pathlib.Path(sys.argv[-1])
    objects = list(objects_of(build))
    problems = []
    for program in PROGRAMS:
        problems += problems_of_program(build / program, HAS + [FORTIFIED] * fortify)
    problems += problems_of_objects(objects) if objects else [f"no object files below {build}"]
    print("\n".join(problems) if problems else f"hardening: {len(PROGRAMS)} programs, {len(objects)} objects")
    return 1 if problems else 0


sys.exit(main())
