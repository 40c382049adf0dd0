#!/usr/bin/env python3
"""The option table, conf/reactord.ini and man/reactord.ini.5 say the same, in the same order.

So do the handlers of a pipeline and what all three say of the option `pipeline`.

Usage: check_options.py PRINT_OPTIONS

The sample has each option once, as `#key = default` under a comment that begins with the table's help. The
manual page has each as an item `.It Cm key`, followed by its default, by what is allowed and by what a change
applies to.
"""
import collections
import re
import subprocess
import sys

SAMPLE = "conf/reactord.ini"
MANUAL = "man/reactord.ini.5"
REQUIRED = "(required)"

Option = collections.namedtuple("Option", "section key default allowed applies help")


def table(program):
    """The options, and the names of the handlers."""
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return [Option(*row) for row in rows if len(row) == 6], [row[1] for row in rows if row[0] == "handler"]


def family(option, key):
    """Is `key` the option's, or one of its family (server.ID)?"""
    head, dot, _ = option.key.partition(".ID")
    return key.startswith(head + ".") if dot else key == option.key


def sample_lines():
    """(line number, section, key, value, comment above) of each option line, live or commented out."""
    section, comment = None, []
    for number, line in enumerate(open(SAMPLE, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if match := re.fullmatch(r"#?\[(\w+)(?: \S+)?\]", line):
            section, comment = match[1], []
        elif match := re.fullmatch(r"#?([a-z0-9_]+(?:\.\w+)?) =(?: (.*))?", line):
            yield number, section, match[1], match[2] or "", " ".join(comment)
            comment = []
        elif line.startswith("# "):
            comment.append(line[2:])
        else:
            comment = []


def check_sample(options):
    """Each option has one line with a comment: the one that documents it. Others are examples."""
    documented = []
    for number, section, key, value, comment in sample_lines():
        option = next((o for o in options if o.section == section and family(o, key)), None)
        if option is None:
            yield f"{SAMPLE}:{number}: [{section}] {key} is not in the option table"
        elif comment:
            documented.append((option.section, option.key))
            if not comment.startswith(option.help):
                yield f"{SAMPLE}:{number}: [{section}] {key}: the comment is not '{option.help}'"
            if option.default not in (REQUIRED, value):
                yield (f"{SAMPLE}:{number}: [{section}] {key} is '{value}', "
                       f"and its default '{option.default}'")
    yield from check_order(SAMPLE, options, documented)


def manual_items():
    """(line number, section, key, the lines of text) of each item below OPTIONS."""
    section, item = None, None
    for number, line in enumerate(open(MANUAL, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if match := re.match(r"\.Ss Section \[(\w+)", line):
            section = match[1]
        elif line.startswith((".Ss", ".Sh")):
            section = None
        if item and (match := re.match(r"\.(It|El|Sh|Ss)\b", line)):
            yield item
            item = None
        if section and (match := re.match(r"\.It Cm (\S+)", line)):
            item = (number, section, match[1], [])
        elif item:
            item[3].append(line.replace(r"\e", "\\"))


def check_manual(options):
    documented = []
    for number, section, key, lines in manual_items():
        option = next((o for o in options if o.section == section and o.key == key), None)
        if option is None:
            yield f"{MANUAL}:{number}: [{section}] {key} is not in the option table"
            continue
        documented.append((section, key))
        default = {REQUIRED: "Required.", "": "Default: empty."}
        for wanted in (default.get(option.default, f"Default: {option.default}."),
                       f"Allowed: {option.allowed}.", f"Applies: {option.applies}."):
            if wanted not in lines:
                yield f"{MANUAL}:{number}: [{section}] {key} has no line '{wanted}'"
    yield from check_order(MANUAL, options, documented)


def listed(handlers):
    """As a sentence lists them: a, b and c."""
    return " and ".join(filter(None, [", ".join(handlers[:-1]), *handlers[-1:]]))


def check_handlers(options, handlers):
    """Each handler is allowed in `pipeline`, named by its item in the manual and described below THE PIPELINE."""
    option = next(o for o in options if o.key == "pipeline")
    allowed = option.allowed.partition(", each at most once")[0]
    if allowed != listed(handlers):
        yield f"[{option.section}] pipeline: allowed is '{allowed}', and there are {listed(handlers)}"
    item = next(lines for _, _, key, lines in manual_items() if key == "pipeline")
    named = [match[1] for line in item if (match := re.match(r"\.Cm (\w+)", line))]
    if named != handlers:
        yield f"{MANUAL}: the item pipeline names {listed(named)}, and there are {listed(handlers)}"
    sample = re.sub(r"\n# ", " ", open(SAMPLE, encoding="utf-8").read())
    if f"There are: {listed(handlers)}." not in sample:
        yield f"{SAMPLE}: pipeline: no 'There are: {listed(handlers)}.'"
    chapter = open(MANUAL, encoding="utf-8").read().partition(".Sh THE PIPELINE\n")[2].partition("\n.Sh ")[0]
    described = re.findall(r"^\.It Cm (\w+)$", chapter, re.M)
    if described != handlers:
        yield f"{MANUAL}: THE PIPELINE describes {listed(described)}, and there are {listed(handlers)}"


def check_order(path, options, documented):
    wanted = [(o.section, o.key) for o in options]
    for section, key in wanted:
        if documented.count((section, key)) != 1:
            times = documented.count((section, key))
            yield f"{path}: [{section}] {key} is documented {times} times"
    if sorted(wanted) == sorted(documented) and wanted != documented:
        first = next(d for w, d in zip(wanted, documented) if w != d)
        yield f"{path}: [{first[0]}] {first[1]} is not in the order of the option table"


def main():
    options, handlers = table(sys.argv[1])
    problems = [*check_sample(options), *check_manual(options), *check_handlers(options, handlers)]
    agreement = (f"options: {len(options)} agree in table, sample and manual, "
                 f"{len(handlers)} handlers in code, table, sample and manual")
    print("\n".join(problems) if problems else agreement)
    return 1 if problems else 0


sys.exit(main())
