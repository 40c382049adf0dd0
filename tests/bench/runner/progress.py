"""progress: what goes on, for whoever looks."""

import sys


def progress(text, is_lasting=False):
    """Tell on standard error what is going on: on a terminal in one line, otherwise not at all."""
    begin = "\r\033[K" if sys.stderr.isatty() else ""
    if is_lasting:
        print(begin + text, file=sys.stderr)
    elif begin:
        print(begin + text, end="", file=sys.stderr, flush=True)
