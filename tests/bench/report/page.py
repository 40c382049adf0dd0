"""page: one HTML file with everything in it."""

from html import escape

from report.figures import ORDER, by_contender, label, ratios, value

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
       color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
svg { max-width: 100%; height: auto }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 0.9em }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
small { color: #666 }
"""


def _cell(row, found, name):
    """`value ratio [range]`, and how long clients waited."""
    if name not in found:
        return "-"
    figure = value(row, found[name])
    text = f"{figure:.3g}" if figure < 1 else f"{figure:.2f}"
    if row.has_ratio and name != "bare" and "bare" in found:
        each = sorted(ratios(row, found[name], found["bare"]))
        text += (f" <b>{each[len(each) // 2]:.2f}x</b>"
                 f" <small>{each[0]:.2f} to {each[-1]:.2f}</small>")
    return text


def _waits(found, name):
    if name not in found or "p50_us" not in found[name][0]:
        return "-"
    rounds = found[name]
    return " / ".join(f"{sorted(result[point] for result in rounds)[len(rounds) // 2]:.0f}"
                      for point in ("p50_us", "p99_us"))


def _table(data, rows, cell):
    """One line for each row."""
    names = [name for name in ORDER if name in data["versions"] or name == "bare"]
    head = "".join(f"<th>{escape(label(name, data))}</th>" for name in names)
    body = []
    for key, results in data["results"].items():
        found = by_contender(rows[key], results)
        cells = [cell(rows[key], found, name) for name in names]
        if any(text != "-" for text in cells):
            body.append(f"<tr><td>{escape(rows[key].title)} <small>{rows[key].unit}</small></td>"
                        + "".join(f"<td>{text}</td>" for text in cells) + "</tr>")
    return (f"<div class=wide><table><tr><th></th>{head}</tr>\n" + "\n".join(body)
            + "</table></div>")


def write_page(data, rows, plots, path):
    """Write it."""
    setting = (f"{data['date']}, Linux {data['kernel']}, {data['cpus']} CPUs ({data['machine']}), "
               f"{data['rounds']} rounds of {data['seconds']:g} s; other programs used "
               f"{data['others_percent']} % of the machine.")
    versions = "; ".join(escape(version) for version in data["versions"].values() if version)
    parts = [f"<h2>{escape(title)}</h2>\n<div class=wide>{svg}</div>" for title, svg in plots]
    path.write_text(f"""<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>reactord beside its peers</title><style>{STYLE}</style>
<h1>reactord beside its peers</h1>
<p>{escape(setting)}<br>{versions}</p>
<p>The server has one processor, the load the other. A figure is the median of the rounds; in each
round every server runs once, and ratios to the bare loop are taken within a round. Bars have the
range of the middle half of the rounds.</p>
{"".join(parts)}
<h2>All rows</h2>
{_table(data, rows, _cell)}
<h2>Round trips, p50 / p99 in us</h2>
{_table(data, rows, lambda row, found, name: _waits(found, name))}
</html>
""", encoding="utf-8")
