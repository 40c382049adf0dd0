#!/usr/bin/env python3
"""Limits of size: files under 450 lines, the C and Python of the tests too; C has 100 columns; functions of src have at
at most 80 lines and 5 parameters.

A line that ends in a string is let through: the formatter does not break strings. Prints the median."""
import pathlib
import re
import statistics
import sys

MAX_FILE, MAX_WIDTH, MAX_FUNCTION, MAX_PARAMETERS = 450, 100, 80, 5
# libmicrohttpd and OpenSSL give their callbacks so many.
FOREIGN = {"admin_http_on_request", "tls_server_free", "tls_server_choose_alpn", "tls_stream_on_message",
           "tls_server_use_ticket_key", "tls_server_use_session", "tls_ocsp_free",
           "tls_sessions_on_free"}
START = re.compile(r"^(?:[\w*]+[ *]+)+?\**(\w+)\(([^;{}]*)\)\n\{\n", re.M)


def parameters(text):
    text = text.strip()
    return 0 if text in ("", "void") else text.count(",") + 1


def functions(text):
    for match in START.finditer(text):
        end = text.index("\n}\n", match.start())
        yield match.group(1), parameters(match.group(2)), text.count("\n", match.start(), end) + 1


def long(path, text):
    lines = text.count("\n")
    return [f"{path}: {lines} lines"] if lines >= MAX_FILE else []


def wide(path, text):
    return [f"{path}:{number}: {len(line)} columns" for number, line in enumerate(text.split("\n"), 1)
            if len(line) > MAX_WIDTH and '"' not in line]


def main():
    problems, lengths = [], []
    for path in sorted(pathlib.Path("src").rglob("*.[ch]")):
        text = path.read_text()
        problems += long(path, text) + wide(path, text)
        for name, count, length in functions(text):
            lengths.append(length)
            if length > MAX_FUNCTION:
                problems.append(f"{path}: {name}() has {length} lines")
            if count > MAX_PARAMETERS and name not in FOREIGN:
                problems.append(f"{path}: {name}() has {count} parameters")
    for path in sorted(path for path in pathlib.Path("tests").rglob("*") if path.suffix in (".c", ".h", ".py")):
        text = path.read_text()
        problems += long(path, text) + ([] if path.suffix == ".py" else wide(path, text))
    if not lengths:
        problems.append("no function was found")
    else:
        p90 = statistics.quantiles(lengths, n=10)[-1]
        print(f"sizes: {len(lengths)} functions, median {statistics.median(lengths):.0f} lines, "
              f"p90 {p90:.0f}, longest {max(lengths)}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
