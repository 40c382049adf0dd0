"""figures: medians and ratios of the results, by contender."""

from statistics import median

ORDER = ("reactord", "haproxy", "haproxy3", "nginx", "bare")


def by_contender(row, results):
    """{contender: [result of each round]}, the row's yardstick as `bare`, in the order of plots."""
    named = {"bare" if name == row.yardstick else name: rounds
             for name, rounds in results.items() if rounds}
    return {name: named[name] for name in ORDER if name in named}


def value(row, rounds):
    """The median of the row's figure."""
    return median(row.value(result) for result in rounds)


def ratios(row, rounds, bare):
    """To the bare loop, round by round."""
    return [row.value(mine) / row.value(other) for mine, other in zip(rounds, bare)]


def label(name, data):
    """The name with its version."""
    version = data["versions"].get(name) or ""
    number = next((word.split("-")[0].replace("nginx/", "") for word in version.split()
                   if word[:1].isdigit() or word.startswith("nginx/")), "")
    title = {"haproxy": "HAProxy", "haproxy3": "HAProxy", "bare": "a bare loop"}.get(name, name)
    return f"{title} {number}".strip()
