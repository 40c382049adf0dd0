#!/usr/bin/env python3
"""What man/reactord-migrating.7 names of reactord exists.

Usage: check_migrating.py PRINT_OPTIONS

In that page Cm marks an option of reactord.ini, and `word=` in the text one behind the address of a server: both must be
in the option table. Li marks a variable of an access log, if it begins with a dollar sign, and below `Termination codes`
a reason: these must be in the manual pages that describe them. Ic marks the words of HAProxy and nginx.
"""
import re
import subprocess
import sys

PAGE = "man/reactord-migrating.7"
MACRO = re.compile(r"\.?[A-Z%][a-z0-9]")
NOT_IN_TABLE = {"include"}  # a line of the file format


def options(program):
    """Keys of the option table, and the words behind the address of a server."""
    rows = [line.split("\t") for line in
            subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()]
    table = {row[1]: row[3] for row in rows if len(row) == 6}
    return set(table), set(re.findall(r"\[(\w+)=", table["server.ID"]))


def listed(path, section, macro):
    """The first words of the items in a section of another page."""
    text = open(path, encoding="utf-8").read().partition(f".Sh {section}\n")[2].partition("\n.Sh ")[0]
    items = re.findall(rf"^\.It {macro}(.+)$", text, re.M)
    return {word for item in items for word in re.split(r" , ", item)}


def marked(line, macro):
    """The words that a line of the page marks with a macro, without punctuation."""
    words, inside = [], False
    for token in line[1:].split():
        if MACRO.fullmatch(token):
            inside = token == macro
        elif inside and token not in (",", ".", ";", ":", ")"):
            words.append(token)
    return words


def problems_of(number, line, section, known):
    keys, server_words, variables, reasons = known
    if not line.startswith("."):
        for word in re.findall(r"\b([a-z_]+)=", line):
            if word not in server_words:
                yield f"{PAGE}:{number}: '{word}=' is no word of a server"
        return
    words = marked(line, "Cm")
    for word in words[:words.index("=")] if "=" in words else words:
        if word not in keys | NOT_IN_TABLE:
            yield f"{PAGE}:{number}: {word} is not in the option table"
    for word in marked(line, "Li"):
        if word.startswith("$") and word[1:] not in variables:
            yield f"{PAGE}:{number}: {word} is no variable of an access log"
        if section == "Termination codes" and word not in reasons:
            yield f"{PAGE}:{number}: {word} is no reason"


def main():
    keys, server_words = options(sys.argv[1])
    reasons = {word.replace(" ", "_") for word in listed("man/reactord.8", "HOW CONNECTIONS END", "")}
    known = (keys, server_words, listed("man/reactord.ini.5", "ACCESS LOGS", "Li "), reasons)
    problems, named, section, literal = [], set(), "", False
    for number, line in enumerate(open(PAGE, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith((".Bd", ".Ed")):
            literal = line.startswith(".Bd")
        elif line.startswith((".Sh", ".Ss")):
            section = line[4:]
        elif not literal:
            problems += problems_of(number, line, section, known)
            named.update(word for word in marked(line, "Cm") if word in keys)
    print("\n".join(problems) if problems else f"migrating: {len(named)} options named, all of them exist")
    return 1 if problems else 0


sys.exit(main())
