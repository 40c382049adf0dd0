"""table: from the results to the two tables people read."""

from statistics import median

NOTHING = "-"


class Cell:
    """The figures of one contender in one row."""

    def __init__(self, row, results, yardstick_results):
        self.value = median(row.value(result) for result in results)
        self.ratios = [row.value(mine) / row.value(bare)
                       for mine, bare in zip(results, yardstick_results)]
        self.p50_us = median(result.get("p50_us", 0) for result in results)
        self.p99_us = median(result.get("p99_us", 0) for result in results)
        self.cpu_percent = median(result["server_cpu_percent"] for result in results)

    @property
    def ratio(self):
        """The median of the ratios of the rounds."""
        return median(self.ratios) if self.ratios else None

    def cost(self):
        """`value  ratio [least-most]`."""
        text = f"{self.value:.3g}" if self.value < 1 else f"{self.value:.2f}"
        if self.ratios:
            text += f"  {self.ratio:.2f}x [{min(self.ratios):.2f}-{max(self.ratios):.2f}]"
        return text

    def latency(self):
        """`p50 / p99  CPU`."""
        cpu = f"{self.cpu_percent:.0f}%"
        if not self.p50_us:
            return f"{NOTHING}  {cpu}"
        return f"{self.p50_us:.0f} / {self.p99_us:.0f}  {cpu}"


def cells_of(row, results):
    """{contender: Cell} of one row."""
    yardstick_results = results.get(row.yardstick, []) if row.has_ratio else []
    return {name: Cell(row, list_of, [] if name == row.yardstick else yardstick_results)
            for name, list_of in results.items() if list_of}


def _columns(measured):
    """The contenders that have a figure anywhere, the row's yardstick as one column `bare`."""
    names = []
    for row, cells in measured:
        for name in cells:
            column = "bare" if name == row.yardstick else name
            if column not in names:
                names.append(column)
    order = ["reactord", "bare", "bare-echo", "bare-copy", "bare-splice", "bare-tls",
             "bare-tls-echo"]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def _cell(row, cells, column):
    return cells.get(row.yardstick if column == "bare" else column)


def _verdict(row, cell):
    """Whether reactord meets the target of the row."""
    if cell is None or row.target == NOTHING:
        return row.target
    if row.target_ratio and cell.ratio is None:
        return row.target
    is_met = cell.ratio <= row.target_ratio if row.target_ratio else cell.value <= row.target_value
    return f"{row.target} {'met' if is_met else 'MISSED'}"


def lines(header, body):
    """A table in Markdown, its columns aligned."""
    widths = [max(len(line[i]) for line in [header] + body) for i in range(len(header))]

    def one(line):
        return "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"

    return "\n".join([one(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
                     + [one(line) for line in body])


def cost_table(measured):
    """What a unit of work costs each server. ${measured} is a list of (row, cells)."""
    columns = _columns(measured)
    body = []
    for row, cells in measured:
        line = [f"{row.title} ({row.unit})", _verdict(row, cells.get("reactord"))]
        for column in columns:
            cell = _cell(row, cells, column)
            line.append(cell.cost() if cell else NOTHING)
        body.append(line)
    return lines(["CPU or memory of the server", "target"] + columns, body)


def latency_table(measured):
    """How long the clients waited, and how busy the server's CPU was."""
    columns = _columns(measured)
    body = []
    for row, cells in measured:
        if row.mode == "idle":
            continue
        line = [row.title]
        for column in columns:
            cell = _cell(row, cells, column)
            line.append(cell.latency() if cell else NOTHING)
        body.append(line)
    return lines(["p50 / p99 in us, server CPU"] + columns, body)
