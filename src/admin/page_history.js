/* ---- history: charts on one time line, with the events ---- */

const SLOTS = {1: 300, 10: 360, 60: 1440, 600: 1008}; /* samples that are kept, by their seconds */
const perSecond = (figure, name) => ({figure, name, perSecond: true});
const CHARTS = [
  {key: "sessions", title: "Open sessions", text: count, series: () => [{figure: "sessions", name: "open"}]},
  {key: "new", title: "New sessions", text: rate, series: () => [perSecond("new_sessions", "new")]},
  {key: "bytes", title: "Bytes", text: (n) => bytes(n) + "/s", binary: true,
    series: () => [perSecond("bytes_in", "in"), perSecond("bytes_out", "out")]},
  {key: "ended", title: "Ends by reason", text: rate, series: endReasons},
  {key: "connect", title: "Connect to servers, at most", text: ms, log: true,
    series: () => [{figure: "connect_p50_ms", name: "p50"}, {figure: "connect_p99_ms", name: "p99"}]},
  {key: "first", title: "First byte of servers, at most", text: ms, log: true,
    series: () => [{figure: "first_byte_p50_ms", name: "p50"}, {figure: "first_byte_p99_ms", name: "p99"}]},
  {key: "failures", title: "Failed connects", text: rate, series: () => [perSecond("connect_failures", "failed")]},
  {key: "busy", title: "Busy, of the busiest loop", text: (n) => n.toFixed(n < 10 ? 1 : 0) + " %",
    series: () => [{figure: "busy_percent", name: "busy"}]},
];
const HEIGHT = 132, LEFT = 66, RIGHT = 6, TOP = 8, BOTTOM = 20, STRIP = 112, REASONS = 5, NEAR = 44, GROUP = 132;
const past = {object: "", step: 0, last: 0, n: 0, end_ms: 0, kept_s: 0, values: new Map()};
let marked = null, pinned = false; /* the moment under the pointer, in ms; null: now */

function endReasons() {
  const sums = [...past.values].filter(([figure]) => figure.startsWith("ended:"))
    .map(([figure, list]) => [figure, list.reduce((sum, v) => sum + (v || 0), 0)])
    .filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]).slice(0, REASONS);
  return sums.map(([figure]) => perSecond(figure, figure.slice(6).replaceAll("_", " ")));
}

const samplesKept = () => Math.min(SLOTS[past.step], Math.floor(past.kept_s / past.step) || 1);
const spanOf = () => samplesKept() * past.step * 1000;
const timeOf = (i) => past.end_ms - (past.n - 1 - i) * past.step * 1000;

/* Add the samples of an answer, or begin with them. */
function keep(answer) {
  const fresh = new Map(Object.entries(answer).filter(([, list]) => Array.isArray(list) && list !== answer.steps_s));
  for (const [reason, list] of Object.entries(answer.ended || {})) fresh.set("ended:" + reason, list);
  const n = (fresh.get("sessions") || fresh.get("busy_percent")).length;
  if (past.last === 0 || answer.last - past.last !== n) {
    past.values.clear();
    past.n = 0;
  }
  for (const figure of new Set([...past.values.keys(), ...fresh.keys()])) {
    const list = (past.values.get(figure) || Array(past.n).fill(0)).concat(fresh.get(figure) || Array(n).fill(0));
    past.values.set(figure, list.slice(-samplesKept()));
  }
  past.n = Math.min(past.n + n, samplesKept());
  past.last = answer.last;
  past.end_ms = Date.now() - answer.age_s * 1000;
}

async function updateHistory() {
  const all = await ask("GET", "/v1/history");
  const has = all.steps_s.length > 0;
  past.kept_s = all.kept_s;
  choices($("object"), all.objects.map((o) => o.kind === "process" ? ["process", "the whole"] :
    [`${o.kind}/${o.name}`, `${o.kind} ${o.name}`]));
  choices($("span"), all.steps_s.map((s) => [String(s), duration(Math.min(s * SLOTS[s], all.kept_s))]));
  $("no-history").hidden = has;
  $("charts").hidden = !has;
  $("short").hidden = all.complete;
  if (!has) return;
  const step = Number($("span").value), object = $("object").value;
  if (step !== past.step || object !== past.object) Object.assign(past, {step, object, last: 0, n: 0});
  keep(await ask("GET", `/v1/history?object=${encodeURIComponent(object)}&step=${step}&after=${past.last}`));
  const from_ms = timeOf(0), short = past.n < samplesKept();
  set($("kept"), `samples of ${duration(step)}` + (short && past.n > 0 ? `, since ${clock(from_ms, true)}` : ""));
  drawHistory();
}

/* ---- scales ---- */

const duration = (s) => s % 86400 === 0 ? `${s / 86400} d` : s % 3600 === 0 ? `${s / 3600} h` :
  s % 60 === 0 ? `${s / 60} min` : `${s} s`;

function clock(at_ms, precise) {
  const at = new Date(at_ms), options = {hour: "2-digit", minute: "2-digit", hourCycle: "h23"};
  if (precise) options.second = "2-digit";
  if (Date.now() - at_ms > 43200000) Object.assign(options, {month: "short", day: "numeric"});
  return at.toLocaleString("en", options);
}

/* The round number at or above ${top}. */
function roundTop(top, binary) {
  if (!(top > 0)) return 1;
  const base = binary && top >= 1024 ? 1024 ** Math.floor(Math.log(top) / Math.log(1024)) : 1;
  const ten = 10 ** Math.floor(Math.log10(top / base));
  return base * ten * [1, 2, 4, 5, 10].find((n) => n * ten >= top / base * 0.999999);
}

/* What is drawn at which height, from 0 to 1, and the ticks. Durations have a logarithmic scale. */
function scaleOf(chart, values) {
  const top = Math.max(0, ...values), least = Math.min(...values.filter((v) => v > 0));
  if (!chart.log || !(top > 0)) {
    const round = roundTop(top, chart.binary);
    return {height: (v) => v / round, ticks: [0, round / 2, round]};
  }
  const from = Math.floor(Math.log10(least)), to = Math.max(from + 1, Math.ceil(Math.log10(top) - 1e-9)), ticks = [];
  for (let n = from; n <= to; n += Math.ceil((to - from) / 4)) ticks.push(10 ** n);
  return {height: (v) => (Math.log10(v) - from) / (to - from), ticks};
}

/* The text of a tick, without decimals that are 0. */
const tickText = (chart, v) => (chart.log ? (v < 1 ? v.toPrecision(1) : count(v)) + " ms" : chart.text(v).replace(/\.0+(?!\d)/, ""));

const TIME_STEPS_S = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
function timeTicks(from_ms, to_ms, width) {
  const step_ms = 1000 * (TIME_STEPS_S.find((s) => width * s * 1000 / (to_ms - from_ms) >= 64) || 172800);
  const zone_ms = new Date(to_ms).getTimezoneOffset() * 60000, ticks = [];
  for (let at = Math.ceil((from_ms - zone_ms) / step_ms) * step_ms + zone_ms; at <= to_ms; at += step_ms) ticks.push(at);
  return {ticks, precise: step_ms < 60000};
}

/* ---- drawing ---- */

function svg(parent, kind, attributes, text) {
  const e = parent.appendChild(document.createElementNS(SVG, kind));
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

/* A chart's figure, made once. */
function chartOf(key, title) {
  let figure = document.querySelector(`#charts figure[data-key="${key}"]`);
  if (figure) return figure;
  figure = $("charts").appendChild(document.createElement("figure"));
  figure.dataset.key = key;
  const caption = figure.appendChild(document.createElement("figcaption"));
  caption.append(document.createElement("b"), document.createElement("span"));
  caption.firstChild.textContent = title;
  const drawing = svg(figure, "svg", {class: "chart", role: "slider", tabindex: "0", "aria-label": title + ", over time"});
  drawing.addEventListener("pointermove", (event) => { if (!pinned) mark(timeAt(drawing, event.clientX)); });
  drawing.addEventListener("pointerleave", () => { if (!pinned) mark(null); });
  drawing.addEventListener("click", (event) => { pinned = true; mark(timeAt(drawing, event.clientX)); });
  drawing.addEventListener("keydown", stepThrough);
  return figure;
}

function timeAt(drawing, x) {
  const box = drawing.getBoundingClientRect(), width = box.width - LEFT - RIGHT;
  return past.end_ms - spanOf() + Math.min(1, Math.max(0, (x - box.left - LEFT) / width)) * spanOf();
}

function stepThrough(event) {
  const step_ms = past.step * 1000, from_ms = timeOf(0);
  const moves = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9};
  if (event.key === "Escape") { pinned = false; mark(null); }
  if (!(event.key in moves)) return;
  event.preventDefault();
  pinned = true;
  mark(Math.min(past.end_ms, Math.max(from_ms, (marked ?? past.end_ms) + moves[event.key] * step_ms)));
}

/* Where time is on a drawing ${width} wide. */
function xOf(width) {
  const from_ms = past.end_ms - spanOf(), scale = (width - LEFT - RIGHT) / spanOf();
  return (at_ms) => LEFT + (at_ms - from_ms) * scale;
}

function drawAxes(drawing, width, height, ticksOf) {
  const x = xOf(width), {ticks, precise} = timeTicks(past.end_ms - spanOf(), past.end_ms, width - LEFT - RIGHT);
  for (const [y, label] of ticksOf) {
    svg(drawing, "line", {class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y});
    svg(drawing, "text", {x: LEFT - 5, y: y + 4, "text-anchor": "end"}, label);
  }
  for (const at of ticks) {
    svg(drawing, "line", {class: "grid", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM});
    if (x(at) > LEFT + 16 && x(at) < width - 24)
      svg(drawing, "text", {x: x(at), y: height - 6, "text-anchor": "middle"}, clock(at, precise));
  }
}

/* Where reactord took no samples, as it was paused. */
function drawGaps(drawing, width, height) {
  const list = past.values.get("sessions") || past.values.get("busy_percent"), x = xOf(width);
  for (let i = 0, from = -1; i < list.length; i++) {
    if (list[i] === null && from < 0) from = i;
    if (from >= 0 && list[i] !== null) {
      svg(drawing, "rect", {class: "gap", x: x(timeOf(from - 1)), width: x(timeOf(i)) - x(timeOf(from)), y: TOP,
        height: height - TOP - BOTTOM});
      from = -1;
    }
  }
}

function drawMarks(drawing, width, height) {
  const x = xOf(width), seen = new Set();
  for (const e of events.list) {
    const at = Math.round(x(e.at_ms)), from = Math.round(x(e.first_ms)), key = at + markOf(e);
    if (at < LEFT || seen.has(key)) continue;
    seen.add(key);
    if (at - from > 1)
      svg(drawing, "rect", {class: "lasting " + markOf(e), x: Math.max(from, LEFT), width: at - Math.max(from, LEFT), y: TOP,
        height: height - TOP - BOTTOM});
    svg(drawing, "line", {class: "event " + markOf(e), x1: at, x2: at, y1: TOP, y2: height - BOTTOM});
  }
}

function drawSeries(drawing, list, i, x, y) {
  let d = "", is_open = false;
  list.forEach((v, n) => {
    if (v !== null) d += `${is_open ? "L" : "M"}${x(timeOf(n)).toFixed(1)},${y(v).toFixed(1)}${is_open ? "" : "h.01"}`;
    is_open = v !== null;
  });
  svg(drawing, "path", {class: "series s" + i, d});
}

function drawChart(chart) {
  const series = chart.series().filter((s) => past.values.has(s.figure));
  const figure = chartOf(chart.key, chart.title), drawing = figure.lastChild;
  const lists = series.map((s) => past.values.get(s.figure).map((v) => v === null || !s.perSecond ? v : v / past.step));
  const isOfObject = chart.key === "ended" ? past.object.split("/")[0] !== "loop" : series.length > 0;
  figure.hidden = !isOfObject;
  if (!isOfObject) return;
  const width = drawing.clientWidth || 300, {height, ticks} = scaleOf(chart, lists.flat()), x = xOf(width);
  const y = (v) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * height(v);
  const labels = ticks.map((v) => [y(v), tickText(chart, v)]);
  chart.lists = lists;
  chart.shown = series;
  drawing.replaceChildren();
  drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  drawGaps(drawing, width, HEIGHT);
  drawAxes(drawing, width, HEIGHT, labels.filter(([, text], n) => n === 0 || n === labels.length - 1 ||
    (text !== labels[n - 1][1] && text !== labels[n + 1][1])));
  drawMarks(drawing, width, HEIGHT);
  lists.forEach((list, i) => drawSeries(drawing, list, i, x, y));
  svg(drawing, "line", {class: "moment", y1: TOP, y2: HEIGHT - BOTTOM});
}

/* The outermost line of those that are close to each other, on the side ${step} (1: right) of ${at}; no label crosses them. */
function endOfGroup(lines, at, step) {
  const end = lines.reduce((last, line) => ((line - last) * step > 0 && (line - last) * step <= NEAR ? line : last), at);
  return Math.abs(end - at) <= GROUP ? end : at;
}

/* The strip above the charts: each event by a few words, as far as there is space. */
function drawStrip() {
  const figure = chartOf("strip", "What happened"), drawing = figure.lastChild, width = drawing.clientWidth || 300;
  const x = xOf(width);
  drawing.replaceChildren();
  drawing.setAttribute("viewBox", `0 0 ${width} ${STRIP}`);
  drawGaps(drawing, width, STRIP);
  drawAxes(drawing, width, STRIP, []);
  drawMarks(drawing, width, STRIP);
  const rank = (e) => (markOf(e) === "bad" ? 0 : ["server", "upstream", "overload", "upgrade"].includes(e.kind) ||
    e.text.startsWith("reload: done") ? 1 : 2);
  const boxes = [], seen = events.list.filter((one) => x(one.at_ms) >= LEFT);
  const lines = [...new Set(seen.map((e) => Math.round(x(e.at_ms))))].sort((a, b) => a - b), reversed = lines.toReversed();
  for (const e of seen.sort((a, b) => rank(a) - rank(b) || b.at_ms - a.at_ms)) {
    const label = svg(drawing, "text", {class: "what " + markOf(e)}, shortOf(e, width < 500 ? 22 : 34)), size = label.getComputedTextLength() + 6;
    const at = Math.round(x(e.at_ms)), right = endOfGroup(lines, at, 1) + 3;
    const left = right + size > width ? endOfGroup(reversed, at, -1) - size : right;
    const row = [0, 1, 2, 3].findIndex((r) => left > 0 && !boxes.some((b) => b.row === r && left < b.right && b.left < left + size));
    if (row < 0 || boxes.some((b) => b.left === left && b.text === label.textContent)) {
      label.remove();
      continue;
    }
    boxes.push({row, left, right: left + size, text: label.textContent});
    svg(label, "title", {}, e.text);
    label.setAttribute("x", left);
    label.setAttribute("y", 20 + row * 19);
  }
  svg(drawing, "line", {class: "moment", y1: TOP, y2: STRIP - BOTTOM});
}

function drawHistory() {
  if (past.n === 0 || $("charts").hidden) return;
  drawStrip();
  for (const chart of CHARTS) drawChart(chart);
  showMoment();
}

/* ---- the moment under the pointer ---- */

function mark(at_ms) {
  marked = at_ms;
  showMoment();
}

function showMoment() {
  const step_ms = past.step * 1000, from_ms = timeOf(0);
  if (marked !== null && (marked < past.end_ms - spanOf() || past.n === 0)) { marked = null; pinned = false; }
  const i = marked === null ? past.n - 1 : Math.round((marked - from_ms) / step_ms);
  for (const chart of CHARTS) showChartMoment(chart, i);
  for (const line of document.querySelectorAll("#charts line.moment")) {
    const at = xOf(line.parentNode.clientWidth)(marked ?? 0);
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    line.style.display = marked === null ? "none" : "";
  }
  const near = marked === null ? [] : events.list.filter((e) => Math.abs(e.at_ms - marked) <= Math.max(step_ms, spanOf() / 150));
  set($("moment"), marked === null ? "" : clock(timeOf(i), true) + (i < 0 || past.values.get("sessions")?.[i] === null ?
    ": no sample" : "") + (near.length ? ": " + near.slice(-4).map((e) => e.text).join("; ") : ""));
}

function showChartMoment(chart, i) {
  const figure = document.querySelector(`#charts figure[data-key="${chart.key}"]`);
  if (!figure || figure.hidden || !chart.lists) return;
  const value = (list) => list[i] === null || list[i] === undefined ? "-" : chart.text(list[i]);
  const legend = figure.querySelector("span"), words = chart.lists.map((list, n) => `${chart.shown[n].name} ${value(list)}`);
  while (legend.childElementCount > words.length) legend.lastChild.remove();
  words.forEach((text, n) => {
    const item = legend.children[n] || legend.appendChild(document.createElement("i"));
    item.className = "l" + n;
    set(item, text);
  });
  const drawing = figure.lastChild, from_ms = past.end_ms - spanOf();
  drawing.setAttribute("aria-valuemin", "0");
  drawing.setAttribute("aria-valuemax", String(Math.round(spanOf() / 1000)));
  drawing.setAttribute("aria-valuenow", String(Math.round(((marked ?? past.end_ms) - from_ms) / 1000)));
  drawing.setAttribute("aria-valuetext", `${clock(marked ?? past.end_ms, true)}: ${words.join(", ") || "none"}`);
}
