#!/usr/bin/env python3
"""man/reactord.8 describes every figure of the tables in the code (stats/figure.h), and no other.

In the manual a kind is a `.Ss` of the section STATISTICS, and a key an `.It Cm KEY , KEY` there. Which kind the
rows of a table belong to is below. Reasons are the items of HOW CONNECTIONS END.
"""
import glob
import re
import sys

MANUAL = "man/reactord.8"
REASONS = "src/stats/session_reason.c"
# Kinds of rows, by file, or by the name of the rows where a file has several; two kinds with a blank between.
KINDS = {
    "loop_figures": "loop",
    "executor_figures": "executor",
    "tls_handshakes": "handshakes",
    "tls_counters": "sessions",
    "counters": "sessions",
    "counters_connects": "sessions",
    "counters_durations": "sessions",
    "admission_bans": "listen",
    "admission_bans_now": "listen limits",
    "admission_clients_now": "listen limits",
    "admission_rules": "listen",
    "admission_clients": "listen",
    "mirror": "listen",
    "fault": "listen",
    "frame": "frame",
    "listener_generation": "listen",
    "listener_generation_waits": "listen",
    "spare": "server",
    "upstream_figures": "upstream",
    "upstream_figures_fit": "upstream",
    "upstream_figures_server": "server",
    "upstream_figures_line": "server",
    "upstream_figures_time": "server",
    "overload_heap": "memory",
    "overload": "overload",
    "overload_state": "overload",
    "rebalance": "rebalance",
    "handoff_figures": "handoff",
    "access_logs": "access_log",
    "server_figures": "process",
    "server_figures_left_out": "process",
    "server_figures_certificate": "certificate",
    "route_figures_process": "process",
}
# Not described one by one: the buckets of histograms, and a figure for each reason.
FAMILIES = {"duration", "connect_duration", "first_byte_duration", "session_duration", "ended"}
TIMES = [("times", "under_Nus"), ("times", "longer")]


def kind_of(rows, path):
    for name in (rows.removesuffix("_rows"), re.sub(r".*/|\.c$", "", path)):
        if name in KINDS:
            return KINDS[name]
    return f"(no-kind-in-{sys.argv[0]}-for-{rows}-of-{path})"


def key_of(macro, arguments):
    """The name of a figure in the arguments of a macro of stats/figure.h, or of a file's own."""
    words = [word.strip() for word in arguments.split(",")]
    keys = {"FIGURE_OF": lambda: words[3], "FIGURE_MS_OF": lambda: words[2] + "_ms",
            "LOOP_FIGURE": lambda: words[2], "LOOP_FIGURE_MS": lambda: words[1] + "_ms"}
    return keys.get(macro, lambda: re.search(r'"(\w+)"', arguments)[1])()


def rows_of(text):
    """(name of the array, key of a row) of all tables in a source."""
    for rows, body in re.findall(r"static const struct figure (\w+)\[\] = \{\n(.*?\n)\};", text, re.S):
        for macro, arguments in re.findall(r"(\w+)\((.*?)\),\n", body, re.S):
            yield rows, key_of(macro, arguments)


def written():
    """(kind, key) of each figure of the tables."""
    for path in glob.glob("src/**/*.c", recursive=True):
        text = open(path, encoding="utf-8").read()
        for rows, key in rows_of(text):
            if key not in FAMILIES:
                yield from ((kind, key) for kind in kind_of(rows, path).split(" "))
    yield from TIMES


def section(name):
    text = open(MANUAL, encoding="utf-8").read()
    match = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh )", text, re.M | re.S)
    return match[1].splitlines() if match else []


def described():
    """(kind, key) of each statistic in the manual."""
    kind = None
    for line in section("STATISTICS"):
        if line.startswith(".Ss "):
            kind = line.split()[-1]
        elif line.startswith(".It Cm "):
            keys = re.sub(r" Ns (Ar|Cm) ", "", line[len(".It Cm "):])
            for key in keys.split(" , "):
                yield kind, key


def reasons_written():
    text = open(REASONS, encoding="utf-8").read()
    for name, words in re.findall(r'\[(SESSION_\w+)\] = "([^"]*)"', text):
        if name != "SESSION_OPEN":
            yield "reason", words


def reasons_described():
    for line in section("HOW CONNECTIONS END"):
        if line.startswith(".It "):
            for words in line[len(".It "):].split(" , "):
                yield "reason", words


def main():
    code = set(written()) | set(reasons_written())
    manual = set(described()) | set(reasons_described())
    for kind, key in sorted(code - manual):
        print(f"{MANUAL}: {kind}: {key} is not described")
    for kind, key in sorted(manual - code):
        print(f"{MANUAL}: {kind}: {key} is not in any table")
    if code == manual:
        print(f"statistics: {len(code)} figures and reasons are described")
    return code != manual


if __name__ == "__main__":
    sys.exit(main())
