/* ---- events ---- */

const EVENTS_SHOWN = 8;
const events = {list: [], last: 0, series: "", all: false};
const KINDS = ["server", "upstream", "listener", "overload", "reload", "upgrade", "admin", "loop", "tls", "process"];

const markOf = (e) => ["error", "warning"].includes(e.level) ? "bad" : e.kind === "admin" || e.kind === "reload" ||
  e.kind === "upgrade" ? "change" : "plain";

/* An event in a few words: `a: down`, `reload: done`, `overload`. */
function shortOf(e, most) {
  const rest = e.text.startsWith(e.subject + ": ") ? e.text.slice(e.subject.length + 2) : e.text;
  const [, name] = /^(?:upstream \S+: server|upstream|listen|loop) ([^ :]+)/.exec(e.subject) || [];
  const words = e.kind === "admin" ? rest.split(" ").slice(0, 2).join(" ") : rest.split(/[:;,]/)[0];
  if (e.kind === "overload") return e.level === "warning" ? "overload" : "overload is over";
  if (e.kind === "reload") return "reload: " + (rest.replace(/^reload: /, "").split(/[:;]/)[0]);
  if (rest.includes(" is reached: ")) return `${name ? name + ": " : ""}${rest.split(" is reached: ")[1].split(/[:;,(]/)[0].trim()}`;
  const text = name ? `${name}: ${words}` : words;
  return text.length > most ? text.slice(0, most - 2) + "..." : text;
}

async function updateEvents() {
  const answer = await ask("GET", `/v1/events?after=${events.last}`), now_ms = Date.now();
  if (answer.series !== events.series && events.series) {
    Object.assign(events, {list: [], last: 0, series: ""});
    return updateEvents();
  }
  for (const e of answer.events) {
    e.at_ms = now_ms - e.age_s * 1000;
    e.first_ms = now_ms - e.first_age_s * 1000;
    if (e.id !== e.first_id) /* it replaces itself */
      events.list = events.list.filter((old) => old.first_id !== e.first_id);
    events.list.push(e);
  }
  events.list = events.list.slice(-500);
  events.last = answer.last;
  events.series = answer.series;
  showEvents();
}

function eventRow(e) {
  const li = document.createElement("li"), at = document.createElement("button"), words = document.createElement("span");
  li.dataset.id = e.id;
  li.className = markOf(e);
  at.type = "button";
  at.textContent = clock(e.at_ms, true);
  at.title = e.time;
  at.setAttribute("aria-label", `Show ${clock(e.at_ms, true)} in the charts`);
  at.addEventListener("click", () => {
    pinned = true;
    mark(e.at_ms);
    $("history-title").scrollIntoView({block: "start"});
  });
  const kind = document.createElement("b");
  kind.textContent = markOf(e) === "bad" ? `${e.level}, ${e.kind}` : e.kind;
  const since = clock(e.first_ms, true);
  words.textContent = e.text + (e.others > 0 ? ` (and ${count(e.others)} others like it since ${since})` :
    e.lines > 1 ? ` (${count(e.lines)} times since ${since})` : "");
  li.append(at, kind, words);
  return li;
}

function showEvents() {
  const kind = $("event-kind").value, word = $("event-filter").value.trim().toLowerCase();
  const found = events.list.filter((e) => (!kind || e.kind === kind) && (!word || e.text.toLowerCase().includes(word))).reverse();
  const shown = events.all ? found : found.slice(0, EVENTS_SHOWN), list = $("events");
  const rows = new Map([...list.children].map((li) => [li.dataset.id, li]));
  shown.forEach((e, i) => {
    const row = rows.get(String(e.id)) || eventRow(e);
    rows.delete(String(e.id));
    if (list.children[i] !== row) list.insertBefore(row, list.children[i] || null);
  });
  for (const row of rows.values()) row.remove();
  $("no-events").hidden = shown.length > 0;
  $("more-events").hidden = found.length === shown.length;
  set($("more-events"), `Show all ${count(found.length)}`);
  set($("events-shown"), events.list.length === found.length ? `the last ${count(events.list.length)}` :
    `${count(found.length)} of ${count(events.list.length)}`);
}

for (const kind of KINDS) $("event-kind").append(new Option(kind, kind));
for (const id of ["event-kind", "event-filter"]) $(id).addEventListener("input", () => { events.all = false; showEvents(); });
$("more-events").addEventListener("click", () => { events.all = true; showEvents(); });
