"""example_files: the example configurations, with the addresses of a test."""

import re
from pathlib import Path

from support.case import check

EXAMPLES = Path(__file__).resolve().parents[3] / "conf/examples"


def replaced(text, replace):
    for old, new in replace.items():
        text, n = re.subn(rf"{re.escape(old)}(?![\w.:])", lambda _, new=new: new, text)
        check(n > 0, f"there is no {old}")
    return text


def example(name, replace):
    """The example with `to` in place of each `from`, which must be there, at the end of a word."""
    text = replaced((EXAMPLES / name).read_text(encoding="utf-8"), replace)
    left = re.search(r"^[^#]*= *(10\.|\*:|/(etc|run|var)/).*", text, re.MULTILINE)
    check(not left, f"{name} has another place: {left and left.group()}")
    return text


def port_of(address):
    return int(address.rpartition(":")[2])


def servers(daemon):
    """State and connections of each server, as the statistics have them."""
    found = {}
    for line in daemon.statistics("server "):
        name, *words = line.removeprefix("server ").split()
        found.setdefault(name, {}).update(word.split("=") for word in words)
    return found
