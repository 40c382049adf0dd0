#!/usr/bin/env python3
"""Static analysis of src: gcc -fanalyzer, clang-tidy and cppcheck, with a list of accepted findings.

A finding is accepted when a line of static.txt fits it: `TOOL CHECK PATH WORDS | REASON`. PATH and the WORDS, which the
finding's line of source must contain, may be *. A line that fits no finding of its tool is itself a problem: what was
mended leaves the list. Which findings there are depends on the tool: the list is for Debian 12's, and others are named.

Usage: static.py [--jobs N] [--tool NAME]... FLAGS; FLAGS: with which sources are compiled, in one argument.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ACCEPTED = pathlib.Path(__file__).with_name("static.txt")
FINDING = re.compile(r"^(?:\./)?((?:src|/\S*/src)/\S+?):(\d+):(?:\d+:)? *(?:warning|error|style|portability|performance): "
                     r"(.*) \[(?:-W(?:error=)?)?([\w.,=-]+?)(?:,-warnings-as-errors)?\]$", re.M)
TIDY = ("bugprone-*", "cert-*", "clang-analyzer-*")
# Checks that ask for another style, or for what C11 in glibc does not have.
TIDY_NOT = (
    "bugprone-easily-swappable-parameters",  # most functions with two numbers
    "bugprone-reserved-identifier", "cert-dcl37-c", "cert-dcl51-cpp",  # _GNU_SOURCE
    "clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling",  # memcpy_s() and the like, of Annex K
    "bugprone-branch-clone",  # cases of a switch in the order of their enum
    "bugprone-narrowing-conversions",  # -Wconversion by another name
    "bugprone-assignment-in-if-condition",
    "bugprone-implicit-widening-of-multiplication-result",  # constants, and counts that have a limit
    "bugprone-sizeof-expression",  # of arrays of pointers to structures
    "cert-err33-c",  # snprintf() may cut; streams are asked at their end, standard output once, in ctl/main
    "cert-err34-c",  # sscanf() of what the kernel or a process of ours wrote; all else is for base/parse
    "clang-analyzer-security.insecureAPI.strcpy",  # each into space of the length that was looked at; _FORTIFY_SOURCE
)


def sources():
    return sorted(map(str, pathlib.Path("src").rglob("*.c")))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + "\n" + done.stderr


def macros(flags):
    """Of all flags those that any compiler takes."""
    return [flag for flag in flags if flag.startswith(("-D", "-I", "-std")) and "_FORTIFY_SOURCE" not in flag]


def each_source(jobs, command):
    """Run a command for each source; the output of all. Of several in one run clang-tidy 14 says that va_start() is missing."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return "\n".join(text for _, text in pool.map(lambda source: run(command(source)), sources()))


def gcc(jobs, flags):
    flags = [flag for flag in flags if not flag.startswith("-Werror")]
    return each_source(jobs, lambda source: ["gcc", *flags, "-fanalyzer", "-fdiagnostics-plain-output", "-c", "-o", "/dev/null", source])


def clang_tidy(jobs, flags):
    checks = ",".join(["-*", *TIDY, *(f"-{check}" for check in TIDY_NOT)])
    return each_source(jobs, lambda source: ["clang-tidy", "--quiet", f"--checks={checks}", source, "--", *macros(flags)])


def cppcheck(jobs, flags):
    with tempfile.TemporaryDirectory() as build:
        status, text = run(["cppcheck", "-q", f"-j{jobs}", "--enable=warning,portability,performance", "--library=posix",
                            f"--cppcheck-build-dir={build}", "--std=c11", "-D__linux__", "-D__x86_64__",
                            *(flag for flag in macros(flags) if not flag.startswith("-std")), "src"])
    return text if status == 0 else f"{text}\nsrc/all:0: error: cppcheck has failed [failed]"


TOOLS = {"gcc": gcc, "clang-tidy": clang_tidy, "cppcheck": cppcheck}
VERSIONS = {"gcc": "12.2", "clang-tidy": "14.0", "cppcheck": "2.10"}  # Debian 12


def check_version(tool):
    found = re.search(r"\d+\.\d+", re.sub(r"\(.*?\)", "", run([tool, "--version"])[1]))
    if not found or found[0] != VERSIONS[tool]:
        print(f"note: {tool} is {found[0] if found else 'unknown'}: {ACCEPTED.name} is for {VERSIONS[tool]}, of Debian 12")


class Accepted:
    """A line of the list."""

    def __init__(self, number, text):
        rule, bar, reason = text.partition("|")
        words = rule.split(None, 3)
        if not bar or not reason.strip() or len(words) != 4:
            sys.exit(f"{ACCEPTED}:{number}: TOOL CHECK PATH WORDS | REASON")
        self.number, self.used = number, False
        self.tool, self.check, self.path, self.words = words[0], words[1], words[2], words[3].strip()

    def fits(self, tool, check, path, line):
        return (self.tool == tool and self.check in check.split(",") and self.path in ("*", path) and
                (self.words == "*" or self.words in line))


def accepted():
    lines = enumerate(ACCEPTED.read_text().splitlines(), 1)
    return [Accepted(number, text) for number, text in lines if text.strip() and not text.startswith("#")]


def line_of(path, number):
    lines = pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).is_file() else []
    return lines[number - 1] if 0 < number <= len(lines) else ""


def findings_of(text):
    """Each one once: a header's is found with each file that includes it."""
    root = str(pathlib.Path.cwd()) + "/"
    return sorted({(path.removeprefix(root), int(number), what, check) for path, number, what, check in FINDING.findall(text)})


def main():
    parser = argparse.ArgumentParser(description="static analysis of src")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tool", action="append", choices=list(TOOLS))
    parser.add_argument("flags")
    o = parser.parse_args()
    rules, problems, n = accepted(), [], 0
    tools = o.tool or list(TOOLS)
    for tool in tools:
        if not shutil.which(tool):
            problems.append(f"{tool} is not installed")
            continue
        check_version(tool)
        for path, number, what, check in findings_of(TOOLS[tool](o.jobs, shlex.split(o.flags))):
            n += 1
            fitting = [rule for rule in rules if rule.fits(tool, check, path, line_of(path, number))]
            for rule in fitting:
                rule.used = True
            if not fitting:
                problems.append(f"{path}:{number}: {what} [{tool} {check}]")
        problems += [f"{ACCEPTED}:{rule.number}: nothing to accept" for rule in rules if rule.tool == tool and not rule.used]
    print("\n".join(problems) if problems else f"static: {' '.join(tools)}: {n} findings, all accepted")
    return 1 if problems else 0


sys.exit(main())
