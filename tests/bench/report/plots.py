"""plots: each as SVG and PNG."""

import sys

try:
    import matplotlib
except ImportError:
    sys.exit("report.py: requires matplotlib: apt-get install python3-matplotlib, and "
             "/usr/bin/python3 if there is another Python")
matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "reactord", "font.size": 10,
                            "font.family": "sans-serif", "axes.spines.top": False,
                            "axes.spines.right": False, "axes.axisbelow": True})

# pylint: disable=wrong-import-position
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, ScalarFormatter

from report.figures import by_contender, label, ratios, value

COLOURS = {"reactord": "#1f6f8b", "haproxy": "#e0a458", "haproxy3": "#c8553d", "nginx": "#6a994e",
           "bare": "#8d99ae"}
COST = ("proxy50", "proxy500", "proxy1000", "proxy2000", "proxy16k", "bulk", "churn")
MOST = 1.8  # a higher bar is cut, and has its figure above
PERCENTILES = ("p50_us", "p90_us", "p99_us", "p999_us")


def _save(figure, directory, name):
    """Both files; the SVG's text."""
    figure.tight_layout()
    figure.savefig(directory / f"{name}.png", dpi=120)
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
    pyplot.close(figure)
    text = (directory / f"{name}.svg").read_text(encoding="utf-8")
    return text[text.index("<svg"):]


def _cost(data, rows, directory):
    """The ratio to the bare loop by row, with the range of the rounds."""
    keys = [key for key in COST if key in data["results"]]
    figure, axes = pyplot.subplots(figsize=(9.5, 4.2))
    found = {key: by_contender(rows[key], data["results"][key]) for key in keys}
    names = [name for name in COLOURS if name != "bare"
             and any(name in found[key] for key in keys)]
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        heights, places, spans = [], [], ([], [])
        for place, key in enumerate(keys):
            if name not in found[key] or "bare" not in found[key]:
                continue
            each = sorted(ratios(rows[key], found[key][name], found[key]["bare"]))
            middle = each[len(each) // 2]
            heights.append(middle)
            places.append(place + (i - (len(names) - 1) / 2) * width)
            spans[0].append(middle - each[len(each) // 4])
            spans[1].append(each[-1 - len(each) // 4] - middle)
        bars = axes.bar(places, heights, width * 0.92, color=COLOURS[name], label=label(name, data),
                        yerr=spans, error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
        for bar, above in zip(bars, spans[1]):
            is_cut = bar.get_height() > MOST
            axes.text(bar.get_x() + bar.get_width() / 2, min(bar.get_height() + above, MOST) + 0.01,
                      f"{bar.get_height():.2f}", fontsize=7, ha="center", va="bottom",
                      rotation=90 if is_cut else 0)
    axes.axhline(1, color=COLOURS["bare"], linewidth=1.2)
    axes.text(len(keys) - 0.45, 1, " a bare\n loop", va="center", fontsize=8, color="#555555")
    axes.set_xticks(range(len(keys)), [rows[key].title.replace("proxy ", "").replace(", ", ",\n")
                                       for key in keys], fontsize=9)
    axes.set_ylim(0.8, MOST)
    axes.set_ylabel("CPU per operation or byte,\nratio to a bare epoll loop")
    axes.legend(frameon=False, ncols=len(names), loc="lower left",
                bbox_to_anchor=(0, 1.08), fontsize=9)
    return _save(figure, directory, "cost")


def _latency(data, rows, directory):
    """Round trips by percentile."""
    keys = [key for key in ("proxy50", "proxy500", "proxy1000", "proxy2000") if key in data["results"]]
    figure, all_axes = pyplot.subplots(1, len(keys), figsize=(9.5, 3.4), squeeze=False)
    for axes, key in zip(all_axes[0], keys):
        for name, rounds in by_contender(rows[key], data["results"][key]).items():
            middle = [sorted(result[point] for result in rounds)[len(rounds) // 2] / 1000
                      for point in PERCENTILES]
            axes.plot(range(len(PERCENTILES)), middle, marker="o", markersize=4,
                      color=COLOURS[name], label=label(name, data))
        axes.set_xticks(range(len(PERCENTILES)), ["50", "90", "99", "99.9"])
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="y", labelsize=8)
        axes.set_title(rows[key].title, fontsize=10)
        axes.grid(axis="y", color="#e4e4e4")
    all_axes[0][0].set_ylabel("round trip, ms")
    all_axes[0][len(keys) // 2].set_xlabel("percentile")
    all_axes[0][0].legend(frameon=False, fontsize=8)
    return _save(figure, directory, "latency")


def _by_connections(data, rows, prefix, ylabel, directory):
    """A figure as connections grow."""
    keys = sorted((key for key in data["results"] if key.startswith(prefix)),
                  key=lambda key: rows[key].connections)
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    for name in COLOURS:
        points = [(rows[key].connections, value(rows[key], found[name])) for key in keys
                  for found in [by_contender(rows[key], data["results"][key])] if name in found]
        if points and not (prefix == "memory" and name == "bare"):
            axes.plot(*zip(*points), marker="o", markersize=4, color=COLOURS[name],
                      label=label(name, data))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("connections")
    axes.set_ylabel(ylabel)
    axes.grid(axis="y", color="#e4e4e4")
    axes.legend(frameon=False, fontsize=9)
    return _save(figure, directory, prefix)


def draw_all(data, rows, directory):
    """[(title, the SVG's text)]."""
    return [("What an operation costs, beside a bare epoll loop", _cost(data, rows, directory)),
            ("How long clients wait", _latency(data, rows, directory)),
            ("CPU per round trip as connections grow",
             _by_connections(data, rows, "growth", "CPU per round trip of 64 B, us", directory)),
            ("Memory of an idle proxied pair",
             _by_connections(data, rows, "memory", "kB per pair", directory))]
