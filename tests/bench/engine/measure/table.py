"""table: from the results to the tables people read."""

from statistics import median

NOTHING = "-"
NEVER = float("inf")


def lines(header, body):
    """A table of texts."""
    widths = [max(len(line[i]) for line in [header] + body) for i in range(len(header))]

    def one(line):
        return "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"

    return "\n".join([one(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
                     + [one(line) for line in body])


# ---- handoff ----

def _ns(results):
    return [result["ns_per_task"] for result in results]


def _time(ns):
    return f"{ns:.1f} ns" if ns < 1000 else f"{ns / 1000:.1f} us"


def speed_ratios(ours, theirs):
    """How many times as long as reactord the other needed in each round."""
    return [their / our for our, their in zip(_ns(ours), _ns(theirs))]


def _handoff_cell(name, results):
    if not results.get(name):
        return NOTHING
    text = _time(median(_ns(results[name])))
    if name == "reactord":
        return f"{text} [{_time(min(_ns(results[name])))} - {_time(max(_ns(results[name])))}]"
    if not results.get("reactord"):
        return text
    ratios = speed_ratios(results["reactord"], results[name])
    return f"{text}  {median(ratios):.2f}x [{min(ratios):.2f}-{max(ratios):.2f}]"


def _handoff_target(row, results):
    if not row.least:
        return NOTHING
    words = []
    for name, least in row.least.items():
        text = f"{least}x {name}"
        if results.get(name) and results.get("reactord"):
            is_met = median(speed_ratios(results["reactord"], results[name])) >= least
            text += " met" if is_met else " MISSED"
        words.append(text)
    return ", ".join(words)


def handoff_table(rows, names, measured):
    """Time a task; the ratio says how many times as long as reactord the other takes."""
    body = [[row.title, _handoff_target(row, measured[row.key])]
            + [_handoff_cell(name, measured[row.key]) for name in names] for row in rows]
    return lines(["time a task", "target"] + names, body)


# ---- weakspots ----

def _figures(row, rounds):
    """The figures of the rounds; None, where the limit was reached, is more than any."""
    return [NEVER if one[row.key] is None else one[row.key] for one in rounds if row.key in one]


def _figure(row, value):
    if value == NEVER:
        return f"> {row.limit:.0f}"
    return f"{value:.1f}" if value < 10 and row.unit != "lines" else f"{value:.0f}"


def _weakspots_cell(row, rounds):
    figures = _figures(row, rounds)
    if not figures:
        return NOTHING
    middle = sorted(figures)[len(figures) // 2]
    return f"{_figure(row, middle)} [{_figure(row, min(figures))} - {_figure(row, max(figures))}]"


def _weakspots_target(row, rounds):
    figures = _figures(row, rounds)
    text = f"<= {row.wanted:g}"
    if figures:
        is_met = sorted(figures)[len(figures) // 2] <= row.wanted
        text += " met" if is_met else " MISSED"
    return text


def weakspots_table(rows, names, measured):
    """Median [least - greatest] of the rounds. ${measured} is as weakspots.measure() gives it."""
    body = [[f"{row.title} ({row.unit})", _weakspots_target(row, measured.get("reactord", []))]
            + [_weakspots_cell(row, measured.get(name, [])) for name in names] for row in rows]
    return lines(["experiment, worst of a round", "target"] + names, body)
