#!/usr/bin/env python3
"""reactorctl's table of commands and man/reactorctl.1 say the same, in the same order.

Usage: check_commands.py PRINT_COMMANDS

In the manual a command is an item `.It Cm NAME ARGUMENTS` of COMMANDS, and its options are items
`.It Fl Fl NAME Ar VALUE` inside it; filters and options of all commands have sections of their own.
"""
import collections
import re
import subprocess
import sys

MANUAL = "man/reactorctl.1"
SECTIONS = {"FILTERS": "filters", "OPTIONS": "global"}


def table(program):
    """The arguments of each command, and the options of each owner."""
    commands, options = {}, collections.defaultdict(list)
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, *row = line.split("\t")
        if kind == "command":
            commands[row[0]] = row[1]
        else:
            options[row[0]].append(tuple(row[1:]))
    return commands, options


def option_of(line):
    """(letter, name, value) of `.It Fl s , Fl Fl address Ar ADDRESS`."""
    match = re.fullmatch(r"\.It (?:Fl (\w)(?: Ar \S+)? , )?Fl Fl (\S+)(?: Ar (\S+))?", line)
    return match and (match[1] or "-", match[2], match[3] or "-")


def arguments_of(rest):
    """`[ID]` of `Oo Ar ID Oc Oo Ar option Oc`: as the table prints it."""
    words = re.sub(r"Oo Ar (\S+) Oc", r"[\1]", rest)
    words = re.sub(r"\bAr (\S+)", r"\1", words).split()
    return " ".join(word for word in words if word not in ("[filter]", "[option]"))


def manual():
    commands, options, owner, section = {}, collections.defaultdict(list), None, None
    for line in open(MANUAL, encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith(".Sh "):
            section = line[4:]
            owner = SECTIONS.get(section)
        elif section == "COMMANDS" and (match := re.fullmatch(r"\.It Cm (\w+)(.*)", line)):
            owner = match[1]
            commands[owner] = arguments_of(match[2])
        elif owner and line.startswith(".It Fl"):
            options[owner].append(option_of(line) or line)
    return commands, options


def main():
    problems = []
    commands, options = table(sys.argv[1])
    described, described_options = manual()
    if list(commands) != list(described):
        problems.append(f"{MANUAL}: COMMANDS has {' '.join(described)}, the table {' '.join(commands)}")
    for name in commands.keys() & described.keys():
        if commands[name] != described[name]:
            problems.append(f"{MANUAL}: {name}: the arguments are '{commands[name]}', not '{described[name]}'")
    for owner in options.keys() | described_options.keys():
        if options[owner] != described_options[owner]:
            problems.append(f"{MANUAL}: {owner}: the options are {options[owner]}, not {described_options[owner]}")
    agreement = f"commands: {len(commands)} agree in table and manual"
    print("\n".join(problems) if problems else agreement)
    return 1 if problems else 0


sys.exit(main())
