#!/usr/bin/env python3
"""The option table, conf/reactord.ini and man/reactord.ini.5 say the same, in the same order.

So do the handlers of a pipeline and what all three say of the option `pipeline`. Each word of an option's value is in
what is allowed, in the sample's comment or default, and marked with Cm in the manual's item; each variable of an access log is an
item below ACCESS LOGS.

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
    """The options, and the rows of each other kind without it: word, handler, variable."""
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    others = collections.defaultdict(list)
    for kind, *row in rows:
        others[kind].append(row)
    return [Option(*row) for row in rows if len(row) == 6], others


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
    """(line number, section, key, the lines) of each item below OPTIONS; a list in an item belongs to it."""
    section, item, depth = None, None, 0
    for number, line in enumerate(open(MANUAL, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if match := re.match(r"\.Ss Section \[(\w+)", line):
            section = match[1]
        elif line.startswith((".Ss", ".Sh")):
            section = None
        if item and line.startswith(".Bl"):
            depth += 1
        elif item and depth > 0 and line.startswith(".El"):
            depth -= 1
        elif item and depth == 0 and re.match(r"\.(It|El|Sh|Ss)\b", line):
            yield item
            item = None
        if section and depth == 0 and (match := re.match(r"\.It Cm (\S+)", line)):
            item = (number, section, match[1], [line])
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


def tokens(text):
    return set(re.findall(r"[\w.-]*\w", text))


def check_words(options, words):
    """Each word of a value, or behind it, is allowed, in the sample's comment and marked in the manual's item."""
    allowed = {(o.section, o.key): tokens(o.allowed) for o in options}
    sample = {(o.section, o.key): tokens(f"{comment} {value}") for o in options
              for _, section, key, value, comment in sample_lines() if comment and section == o.section and family(o, key)}
    marked = {(section, key): tokens(" ".join(line for line in lines if line.startswith((".Cm ", ".It Cm "))))
              for _, section, key, lines in manual_items()}
    behind = [(o.section, o.key, word) for o in options if o.key == "server.ID" for word in re.findall(r"\[(\w+)", o.allowed)]
    for section, key, word in words + behind:
        where = (section, key)
        if word not in allowed[where]:
            yield f"[{section}] {key}: {word} is not in what the table says is allowed"
        if word not in sample.get(where, ()):
            yield f"{SAMPLE}: [{section}] {key}: the comment has no {word}"
        if word not in marked.get(where, ()):
            yield f"{MANUAL}: [{section}] {key}: {word} is not described (.Cm {word})"


def check_variables(variables):
    """Each variable of an access log is an item of the manual, and no other."""
    chapter = open(MANUAL, encoding="utf-8").read().partition(".Sh ACCESS LOGS\n")[2].partition("\n.Sh ")[0]
    described = [name for item in re.findall(r"^\.It Li (.+)$", chapter, re.M) for name in item.split(" , ")]
    for name in sorted(set(variables) ^ set(described)):
        yield (f"{MANUAL}: ACCESS LOGS: the variable {name} is not described" if name in variables
               else f"{MANUAL}: ACCESS LOGS: {name} is no variable")


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
    options, others = table(sys.argv[1])
    handlers, variables = [[name for name, in others[kind]] for kind in ("handler", "variable")]
    problems = [*check_sample(options), *check_manual(options), *check_handlers(options, handlers),
                *check_words(options, others["word"]), *check_variables(variables)]
    agreement = (f"options: {len(options)} with {len(others['word'])} words agree in table, sample and manual, "
                 f"{len(handlers)} handlers in code, table, sample and manual, "
                 f"{len(variables)} variables of access logs in code and manual")
    print("\n".join(problems) if problems else agreement)
    return 1 if problems else 0


sys.exit(main())
