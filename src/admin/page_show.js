/* ---- what is shown ---- */

/* The increase of a figure per second since the sample before. */
function grows(kind, object, figure, elapsed_s) {
  const was = before && before[kind].get(object.key);
  return was && elapsed_s > 0 ? Math.max(0, (object[figure] - was[figure]) / elapsed_s) : 0;
}

const traffic = [
  column("Sessions", (o) => count(o.sessions)),
  column("New", (o) => rate(o.new_rate)),
  column("In", (o) => bytes(o.in_rate) + "/s"),
  column("Out", (o) => bytes(o.out_rate) + "/s"),
];
const listenerColumns = [
  column("Listener", (o) => o.name), stateColumn, column("Leads to", (o) => o.upstream || o.service, {text: true}),
  ...traffic, column("Total", (o) => count(o.sessions_total)),
  {title: "New sessions", show: (cell, o) => plot(cell, o.key, o.new_rate, "New sessions of " + o.name, rate)},
  column("Addresses", (o) => o.addresses.join(", "), {text: true, wide: true}),
];
/* Why a server gets no sessions, what its last check found, and its agent. */
function foundOf(server) {
  const why = server.down_reason, check = server.last_check;
  return [why && !(check || "").includes(why) ? why : "", check ? "check " + check : "", server.agent ? "agent says " + server.agent : ""]
    .filter(Boolean).join("; ") || "-";
}

const BY_HAND = "An administrator added this server, or replaced its line. It stays over reloads and upgrades, until the file " +
  "has another line for it than before, or until reactorctl reset.";
const serverColumns = [
  {title: "Server", show(cell, o) {
    set(cell, o.name + (o.backup ? " (backup)" : "") + (o.by_hand ? " (by hand)" : ""));
    cell.title = o.by_hand ? BY_HAND : "";
  }},
  stateColumn, column("Weight", (o) => o.weight === null ? "-" : String(o.weight)), ...traffic,
  column("Connect p99", (o) => o.connect_duration && o.connect_duration.count ? ms(o.connect_duration.p99_ms) : "-"),
  column("Failed", (o) => count(o.connect_failures || 0)),
  column("Downs", (o) => o.downs === undefined ? "-" : count(o.downs)),
  column("Since", (o) => o.state_age_ms === undefined ? "-" : `${clock(Date.now() - o.state_age_ms)}, ${about(o.state_age_ms / 1000)}`),
  column("Why down, last check", foundOf, {text: true, wide: true}),
  {title: "New sessions", show: (cell, o) => plot(cell, o.key, o.new_rate, "New sessions of " + o.name, rate)},
  column("Address", (o) => o.address || "-", {text: true, wide: true}),
  actions((o) => ["draining", "disabled"].includes(o.state)
    ? [{title: "Enable", label: "Enable " + o.path, question: `Give ${o.path} sessions again?`,
        path: "/v1/server", body: {server: o.path, state: "enable"}}]
    : [{title: "Drain", label: "Drain " + o.path, question: `Give ${o.path} no new sessions? Those it has go on.`,
        path: "/v1/server", body: {server: o.path, state: "drain"}}]),
];
const loopColumns = [
  column("Loop", (o) => o.name), stateColumn, column("Connections", (o) => count(o.connections)),
  column("Turns", (o) => rate(o.turn_rate)), column("Waiting tasks", (o) => count(o.tasks_pending)),
  column("Turn p99", (o) => o.turn && o.turn.count ? ms(o.turn.p99_ms) : "-"),
  column("Longest task", (o) => o.longest ? `${ms(o.longest_ms)} ${o.longest}` : "-", {text: true}),
  column("Stalls", (o) => count(o.stalls)), column("I/O ratio", (o) => `${o.io_ratio} %`),
  {title: "Busy", show: (cell, o) => plot(cell, o.key, o.busy, "Busy share of " + o.name, (v) => v.toFixed(0) + " %")},
];
const sessionColumns = [
  column("Client", (o) => o.client || "-"), column("Listener", (o) => o.listener, {text: true}),
  column("Server", (o) => o.server ? `${o.upstream}/${o.server}` : "-", {text: true}),
  column("Loop", (o) => o.loop, {text: true}), column("Age", (o) => seconds(o.age_s)), column("Idle", (o) => seconds(o.idle_s)),
  column("In", (o) => bytes(o.bytes_in)), column("Out", (o) => bytes(o.bytes_out)),
  column("ID", (o) => o.id, {text: true, wide: true}),
  actions((o) => [{title: "Kill", label: `Kill the session of ${o.client || "a client"}, ${o.id}`,
    question: `Reset the session of ${o.client || "this client"} at ${o.listener}?`,
    path: "/v1/sessions/kill", body: {id: o.id}}]),
];

function keyed(list, kind, elapsed_s, prefix = "") {
  for (const o of list) {
    o.key = prefix + kind + "/" + (o.id || o.name);
    if (o.sessions_total === undefined) continue;
    o.new_rate = grows("all", o, "sessions_total", elapsed_s);
    o.in_rate = grows("all", o, "bytes_in", elapsed_s);
    o.out_rate = grows("all", o, "bytes_out", elapsed_s);
  }
  return list;
}

/* Of many servers those in trouble come first. */
const rankOf = (server) => (["down", "ejected", "absent"].includes(server.state) ? 0 : 1);
const everyServer = new Set(); /* upstreams of which all servers are shown */

function upstreamPart(up) {
  const part = $("upstreams").appendChild(document.createElement("details"));
  const summary = part.appendChild(document.createElement("summary")), scroll = part.appendChild(document.createElement("div"));
  const more = part.appendChild(document.createElement("button"));
  part.dataset.key = up.name;
  part.open = true;
  summary.append(document.createElement("b"), document.createElement("span"));
  scroll.className = "scroll";
  const table = scroll.appendChild(document.createElement("table"));
  table.className = "cards";
  table.setAttribute("aria-label", "Servers of " + up.name);
  more.type = "button";
  more.addEventListener("click", () => {
    if (!everyServer.delete(up.name)) everyServer.add(up.name);
    update();
  });
  return part;
}

function showUpstreams(upstreams, elapsed_s) {
  const home = $("upstreams"), parts = new Map([...home.children].map((part) => [part.dataset.key, part]));
  const word = $("server-filter").value.trim().toLowerCase();
  for (const up of upstreams) {
    const part = parts.get(up.name) || upstreamPart(up), [summary, scroll, more] = part.children;
    parts.delete(up.name);
    const down = up.servers.filter((server) => rankOf(server) === 0).length;
    set(summary.children[0], up.name);
    set(summary.children[1], ` ${count(up.sessions)} sessions, ${count(up.waiting)} waiting, ` +
      `${count(up.servers_up)} of ${count(up.servers.length)} servers up`);
    summary.className = down === up.servers.length && down > 0 ? "bad" : down > 0 ? "warn" : "";
    const found = up.servers.filter((server) => !word ||
      [server.name, server.address, server.state, server.down_reason].join(" ").toLowerCase().includes(word));
    if (found.length > SERVERS) found.sort((x, y) => rankOf(x) - rankOf(y)); /* else rows would move under the pointer */
    const shown = keyed(everyServer.has(up.name) ? found : found.slice(0, SERVERS), "server", elapsed_s, up.name + "/");
    for (const server of shown) server.path = up.name + "/" + server.name;
    fill(scroll.firstChild, serverColumns, shown);
    more.hidden = found.length <= SERVERS;
    set(more, everyServer.has(up.name) ? `Show ${SERVERS} servers` : `Show all ${count(found.length)} servers`);
  }
  for (const part of parts.values()) part.remove();
  $("no-upstreams").hidden = upstreams.length > 0;
}

/* What is wrong now, in words. */
function troubles(listeners, upstreams) {
  const out = upstreams.flatMap((up) => up.servers.filter((server) => rankOf(server) === 0).map((server) => [server.state, `${up.name}/${server.name}`]));
  const words = ["down", "ejected", "absent"].map((state) => [state, out.filter(([s]) => s === state).map(([, name]) => name)])
    .filter(([, names]) => names.length > 0)
    .map(([state, names]) => `${state}: ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${count(names.length - 3)} others` : ""}`);
  const paused = listeners.filter((o) => o.state === "paused").map((o) => o.name);
  const load = events.list.findLast((e) => e.kind === "overload" || /^ready$|: took over/.test(e.text));
  if (load && load.kind === "overload" && markOf(load) === "bad") words.push(`overload since ${clock(load.at_ms, true)}, no client is accepted`);
  if (paused.length > 0) words.push(`paused: ${paused.join(", ")}`);
  return words.join("; ");
}

function showSummary(status, trouble) {
  const facts = {State: status.state, Trouble: trouble || "none", Sessions: count(status.sessions), Up: seconds(status.uptime_s), Version: status.version,
    Process: String(status.pid), Reloads: `${count(status.reload.count)}, ${count(status.reload.failed)} refused` +
      (status.reload.confirm_in_s !== null ? `, to be confirmed within ${seconds(status.reload.confirm_in_s)}` : ""),
    Configuration: status.config_path + (status.edits > 0 ? `, with ${count(status.edits)} server${status.edits > 1 ? "s" : ""} added or removed by hand` : "")};
  const list = $("summary");
  for (const [name, text] of Object.entries(facts)) {
    let fact = [...list.children].find((div) => div.dataset.key === name);
    if (!fact) {
      fact = list.appendChild(document.createElement("div"));
      fact.dataset.key = name;
      fact.append(document.createElement("dt"), document.createElement("dd"));
      fact.firstChild.textContent = name;
    }
    set(fact.lastChild, text);
    if (name === "State") fact.lastChild.className = "state " + (trouble ? "" : mood(text));
    if (name === "Trouble") fact.lastChild.className = trouble ? "state bad" : "";
  }
  document.title = `${trouble ? "! " : ""}reactord: ${status.state}, ${count(status.sessions)} sessions`;
}

function showSessions(answer, elapsed_s) {
  fill($("sessions"), sessionColumns, keyed(answer.sessions, "session", elapsed_s));
  set($("matched"), answer.matched > answer.sessions.length ? `the first ${SESSIONS} of ${count(answer.matched)}` : count(answer.matched));
  $("matched").className = "quiet";
  $("no-sessions").hidden = answer.sessions.length > 0;
}

/* The sessions that match the filters; a filter that reactord refuses is said where it is. */
async function updateSessions(elapsed_s) {
  if (!$("sessions-fold").open) return;
  const query = new URLSearchParams({limit: SESSIONS, sort: $("sort").value});
  for (const [name, id] of [["listener", "by-listener"], ["upstream", "by-upstream"], ["client", "by-client"], ["min_idle", "by-idle"]])
    if ($(id).value.trim()) query.set(name, $(id).value.trim());
  try {
    showSessions(await ask("GET", "/v1/sessions?" + query), elapsed_s);
  } catch (error) {
    if (error.status !== 400) throw error;
    set($("matched"), error.message);
    $("matched").className = "bad";
  }
}

function show(status, listeners, upstreams, loops) {
  const at_ms = performance.now(), elapsed_s = before ? (at_ms - before.at_ms) / 1000 : 0;
  const all = new Map();
  mayWrite = status.write;
  showSummary(status, troubles(listeners, upstreams));
  fill($("listeners"), listenerColumns, keyed(listeners, "listener", elapsed_s));
  showUpstreams(upstreams, elapsed_s);
  for (const loop of keyed(loops, "loop", elapsed_s)) {
    loop.turn_rate = grows("all", loop, "turns", elapsed_s);
    loop.busy = (grows("all", loop, "io_ms", elapsed_s) + grows("all", loop, "task_ms", elapsed_s)) / 10;
  }
  fill($("loops"), loopColumns, loops);
  set($("loops-sum"), `${count(loops.length)}, the busiest ${Math.max(0, ...loops.map((o) => o.busy)).toFixed(0)} %`);
  choices($("by-listener"), [["", "all"], ...listeners.map((o) => [o.name, o.name])]);
  choices($("by-upstream"), [["", "all"], ...upstreams.map((o) => [o.name, o.name])]);
  for (const o of [...listeners, ...loops]) all.set(o.key, o);
  for (const up of upstreams) for (const o of up.servers) all.set(o.key || `${up.name}/server/${o.name}`, o);
  for (const key of plots.keys()) if (!all.has(key)) plots.delete(key);
  before = {at_ms, all};
  $("login").hidden = true;
  $("figures").hidden = false;
  return elapsed_s;
}

let failed = false, updating = false;
async function update() {
  if (updating) return;
  updating = true;
  clearTimeout(timer);
  try {
    const [status, listeners, upstreams, loops] = await Promise.all(["/v1/status", "/v1/listeners", "/v1/upstreams",
      "/v1/loops"].map((path) => ask("GET", path)));
    const elapsed_s = show(status, listeners.listeners, upstreams.upstreams, loops.loops);
    await Promise.all([updateSessions(elapsed_s), updateEvents().then(updateHistory)]);
    document.body.dataset.updates = String(Number(document.body.dataset.updates || 0) + 1);
    if (failed) say("");
    failed = false;
  } catch (error) {
    failed = true;
    if (error.status === 401) return askToken();
    say(error.status ? error.message : "reactord does not answer; the figures below are old", "bad");
  } finally {
    updating = false;
  }
  if (!paused && !document.hidden) timer = setTimeout(update, INTERVAL_MS);
}

function askToken() {
  say(token ? "reactord refuses this token" : "", "bad");
  $("figures").hidden = true;
  $("login").hidden = false;
  $("token").focus();
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem(TOKEN_KEY, token);
  update();
});
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  if (paused) clearTimeout(timer); else update();
});
for (const id of ["object", "span", "sort", "by-listener", "by-upstream", "by-client", "by-idle", "server-filter"])
  $(id).addEventListener("change", update);
$("session-filters").addEventListener("submit", (event) => event.preventDefault());
$("sessions-fold").addEventListener("toggle", update);
addEventListener("resize", drawHistory);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawHistory);
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) update(); });
update();
