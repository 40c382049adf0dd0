#!/usr/bin/env python3
"""What man/reactord-migrating.7 names of reactord exists.

Usage: check_migrating.py PRINT_OPTIONS

In that page Cm marks an option of reactord.ini, also with `= value`, and `word=` in the text one behind the address of a
server: all must be in the option table, and no name of an option stands in the text unmarked. Li marks a variable of an
access log, if it begins with a dollar sign, and below `Termination codes` a reason: these must be in the manual pages that
describe them, and so must each command of reactorctl that is named. Another word_with_underscores that Li marks must be
one of an option's value. Li also marks paths of the admin interface, which must have a route. Ic marks the words of
HAProxy and nginx: each directive of tests/lint/directives.txt must be there, and those below `Without a counterpart`, or
in a row that says None, are counted as the page says.
"""
import collections
import pathlib
import re
import subprocess
import sys

PAGE = "man/reactord-migrating.7"
DIRECTIVES = "tests/lint/directives.txt"
WITHOUT = "Without a counterpart"
MACRO = re.compile(r"\.?[A-Z%][a-z0-9]")
Known = collections.namedtuple("Known", "keys values server_words variables reasons commands routes")
NOT_IN_TABLE = {"include"}  # a line of the file format


def options(program):
    """Keys of the option table, the words that are values of each, and those behind the address of a server."""
    rows = [line.split("\t") for line in
            subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()]
    table = {row[1]: row[3] for row in rows if len(row) == 6}
    values = collections.defaultdict(set)
    for row in rows:
        if row[0] == "word":
            values[row[2]].add(row[3])
    return set(table), values, set(re.findall(r"\[(\w+)=", table["server.ID"]))


def routes():
    """The paths of the admin interface."""
    return set(re.findall(r'{"(?:GET|POST)", "(/[\w/]+)"', "".join(p.read_text() for p in pathlib.Path("src/admin").glob("*.c"))))


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


def directives():
    """The directives of each part of the page."""
    text = re.sub(r"^#.*\n", "", open(DIRECTIVES, encoding="utf-8").read(), flags=re.M)
    return {part: {" ".join(word.split()) for word in words.split(",")}
            for part, words in re.findall(r"^\[(.*)\]\n([^[]*)", text, re.M)}


def phrases(line):
    """What Ic marks in a line, between commas."""
    found, phrase, inside = [], [], False
    for token in [*line.lstrip(".").split(), "Sm"]:
        if MACRO.fullmatch(token) or token in (",", ".", ";", ":", "(", ")"):
            found += [" ".join(phrase)] if phrase else []
            phrase, inside = [], token == "Ic" if MACRO.fullmatch(token) else inside
        elif inside:
            phrase.append(token)
    return found


def meant(line):
    """The directives that a line may mean: `a b , c` is also `a c`, and may leave out `option`."""
    found = phrases(line)
    first = found[0].rpartition(" ")[0] if found else ""
    return {prefix + phrase for phrase in found for prefix in ("", first + " ", "option ")}


def named_in(text):
    return set().union(*(meant(line) for line in text.splitlines() if line.startswith(".")))


def foreign_problems(part, wanted, text):
    """What is missing of a part of the page, and whether it counts right."""
    rows, _, rest = text.partition(f".Ss {WITHOUT}\n")
    without = {word for line in rest.splitlines() if line.startswith(".Ic") for word in phrases(line)} - {"bind", "server"}
    everywhere = named_in(text)
    for word in sorted(without - wanted):
        yield f"{PAGE}: {part}: {word} is below {WITHOUT}, and not in {DIRECTIVES}"
    for word in sorted(wanted):
        if not any(name == word or name.startswith(word + " ") for name in everywhere):
            yield f"{PAGE}: {part}: {word} is not named"
    for row in re.findall(r"^\.It (Ic .*)\nNone[.:]", rows, re.M):
        for word in sorted(meant(row) & wanted - without):
            yield f"{PAGE}: {part}: {word} has no counterpart, and is not below {WITHOUT}"
    counts = re.search(r"These are all of the (\d+) directives(?:.|\n)*?: (\d+)\.$", rest, re.M)
    if not counts or counts.groups() != (str(len(wanted)), str(len(without))):
        yield f"{PAGE}: {part}: of {len(wanted)} directives {len(without)} are without a counterpart"


def problems_of(number, line, section, known):
    for command in re.findall(r"reactorctl ([a-z]+)", line):
        if command not in known.commands:
            yield f"{PAGE}:{number}: reactorctl has no command {command}"
    if not line.startswith("."):
        for word in re.findall(r"\b([a-z_]+)=", line):
            if word not in known.server_words:
                yield f"{PAGE}:{number}: '{word}=' is no word of a server"
        for word in re.findall(r"\b[a-z]+(?:[_-][a-z]+)+\b(?!=)", line):
            if word.replace("-", "_") in known.keys:
                yield f"{PAGE}:{number}: {word}: mark the option with Cm"
        return
    words = marked(line, "Cm")
    keys = words[:words.index("=")] if "=" in words else words
    for word in keys:
        if word not in known.keys | NOT_IN_TABLE:
            yield f"{PAGE}:{number}: {word} is not in the option table"
    for value in words[len(keys) + 1:]:
        if keys[0] in known.values and value not in known.values[keys[0]]:
            yield f"{PAGE}:{number}: {value} is no value of {keys[0]}"
    for word in marked(line, "Li"):
        if word.startswith("$") and word[1:] not in known.variables:
            yield f"{PAGE}:{number}: {word} is no variable of an access log"
        if word.startswith("/v1/") and word not in known.routes:
            yield f"{PAGE}:{number}: {word} has no route"
        if section == "Termination codes":
            if word not in known.reasons:
                yield f"{PAGE}:{number}: {word} is no reason"
        elif re.fullmatch(r"[a-z0-9]+(?:_[a-z0-9]+)+", word) and word not in set().union(*known.values.values()):
            yield f"{PAGE}:{number}: {word} is no value of an option"


def main():
    keys, values, server_words = options(sys.argv[1])
    reasons = {word.replace(" ", "_") for word in listed("man/reactord.8", "HOW CONNECTIONS END", "")}
    known = Known(keys, values, server_words, listed("man/reactord.ini.5", "ACCESS LOGS", "Li "), reasons,
                  {line.split()[0] for line in listed("man/reactorctl.1", "COMMANDS", "Cm ")}, routes())
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
    parts, page = directives(), open(PAGE, encoding="utf-8").read()
    for part, wanted in parts.items():
        problems += foreign_problems(part, wanted, page.partition(f".Sh {part}\n")[2].partition("\n.Sh ")[0])
    print("\n".join(problems) if problems else f"migrating: {len(named)} options named, all of them exist, and "
          f"{sum(map(len, parts.values()))} directives of others")
    return 1 if problems else 0


sys.exit(main())
