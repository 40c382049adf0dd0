"""table: from the outcomes to what people read."""

from engine.measure.table import NOTHING, lines

SLOW_S = 0.5

HEADER = ["contender", "clients", "requests done", "failed in flight", "failed otherwise",
          "longest wait", "p99", f"waited over {SLOW_S} s", "attempts while down",
          "the same after `fall` checks"]


def _ms(ns):
    return f"{ns / 1e6:.0f} ms" if ns >= 10e6 else f"{ns / 1e6:.1f} ms"


def _marked(outcome):
    if outcome.marked_ns is None:
        return NOTHING
    return f"{outcome.attempts_marked} in {outcome.marked_ns / 1e9:.1f} s"


def outcome_table(outcomes):
    """A line for each contender and kind of clients."""
    body = []
    for name, outcome in outcomes.items():
        attempts = [str(outcome.attempts), _marked(outcome)]
        for kind, book in outcome.books.items():
            body.append([name, kind, str(book.done), str(book.in_flight),
                         str(sum(book.otherwise.values())), _ms(book.longest_ns), _ms(book.p99_ns),
                         str(book.slow)] + attempts)
            name, attempts = "", ["", ""]
    return lines(HEADER, body)


def blame(outcomes):
    """What the clients saw of failures that cannot be excused, a line for each kind of them."""
    return "\n".join(
        f"{name}, {kind} clients: "
        + ", ".join(f"{count} {what}" for what, count in sorted(book.otherwise.items()))
        for name, outcome in outcomes.items() for kind, book in outcome.books.items()
        if book.otherwise)
