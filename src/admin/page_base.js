"use strict";
const SAMPLES = 60, INTERVAL_MS = 1000, SESSIONS = 25, SERVERS = 20;
const TOKEN_KEY = "reactord-token";
const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem(TOKEN_KEY) || "";
let mayWrite = false, paused = false, before = null, timer = 0;
const plots = new Map(); /* key -> the last SAMPLES values */

/* ---- requests ---- */

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function ask(method, path, body) {
  const headers = token ? {Authorization: "Bearer " + token} : {};
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {method, headers, body: body && JSON.stringify(body), cache: "no-store"});
  const json = await answer.json().catch(() => ({error: answer.statusText}));
  if (!answer.ok) throw new Refused(answer.status, json.error || answer.statusText);
  return json;
}

/* ---- text of figures ---- */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
function bytes(n) {
  let unit = 0;
  for (; n >= 1024 && unit < UNITS.length - 1; unit++) n /= 1024;
  return (unit ? n.toFixed(1) : Math.round(n)) + " " + UNITS[unit];
}
const count = (n) => Math.round(n).toLocaleString("en");
const rate = (n) => (n < 10 ? n.toFixed(1) : count(n)) + "/s";
function seconds(s) {
  if (s < 60) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}
/* In one unit. */
const about = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` :
  `${Math.floor(s / 86400)} d`;
const ms = (n) => (n < 10 ? n.toFixed(2) : count(n)) + " ms";
const mood = (state) => ({up: "good", accepting: "good", started: "good", serving: "good", open: "", down: "bad",
  "not_started": ""}[state] ?? "warn");

/* ---- plots ---- */

const SVG = "http://www.w3.org/2000/svg";
function plot(td, key, value, name, text) {
  const list = plots.get(key) || [];
  list.push(Math.max(0, value));
  if (list.length > SAMPLES) list.shift();
  plots.set(key, list);
  let svg = td.firstChild;
  if (!svg) {
    svg = td.appendChild(document.createElementNS(SVG, "svg"));
    svg.setAttribute("class", "plot");
    svg.setAttribute("role", "img");
    svg.setAttribute("viewBox", `0 0 ${SAMPLES - 1} 20`);
    svg.setAttribute("preserveAspectRatio", "none");
    for (const kind of ["area", "line"]) svg.appendChild(document.createElementNS(SVG, "path")).setAttribute("class", kind);
  }
  const top = Math.max(...list, 1e-9);
  const at = list.map((v, i) => `${SAMPLES - list.length + i},${(19 - 18 * v / top).toFixed(2)}`).join("L");
  svg.children[0].setAttribute("d", `M${SAMPLES - list.length},20L${at}L${SAMPLES - 1},20Z`);
  svg.children[1].setAttribute("d", "M" + at);
  svg.setAttribute("aria-label", `${name}, last minute: now ${text(value)}, at most ${text(top)}`);
}

/* ---- tables: rows are kept by key, so that focus and selection stay ---- */

function fill(table, columns, objects) {
  if (!table.tHead) {
    const row = table.createTHead().insertRow();
    for (const column of columns) {
      const th = row.appendChild(document.createElement("th"));
      th.scope = "col";
      th.textContent = column.title;
      if (column.text) th.className = "text";
    }
    table.createTBody();
  }
  const body = table.tBodies[0], rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  objects.forEach((object, i) => {
    let row = rows.get(object.key);
    rows.delete(object.key);
    if (!row) {
      row = document.createElement("tr");
      row.dataset.key = object.key;
      columns.forEach((column, n) => {
        const cell = row.appendChild(document.createElement(n ? "td" : "th"));
        if (!n) cell.scope = "row";
        cell.dataset.label = column.title;
        cell.className = [column.text ? "text" : "", column.wide ? "wide" : "", column.actions ? "actions" : ""].join(" ").trim();
      });
    }
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
    columns.forEach((column, n) => column.show(row.cells[n], object));
  });
  for (const row of rows.values()) row.remove();
}

function set(cell, text) { if (cell.textContent !== text) cell.textContent = text; }
const column = (title, of, more) => ({title, show: (cell, o) => set(cell, of(o)), ...more});
const stateColumn = {title: "State", text: true, show(cell, o) {
  set(cell, o.state.replace("_", " ") + (o.state === "up" && o.in_use === false ? ", not in use" : ""));
  cell.className = "text state " + mood(o.state);
}};

/* The options of ${select}: pairs of value and text; the one chosen stays. */
function choices(select, wanted) {
  const key = JSON.stringify(wanted);
  if (select.dataset.made === key) return;
  const chosen = select.value;
  select.dataset.made = key;
  select.replaceChildren(...wanted.map(([value, text]) => new Option(text, value)));
  if (wanted.some(([value]) => value === chosen)) select.value = chosen;
}

function actions(make) {
  return {title: "Actions", text: true, actions: true, show(cell, o) {
    const wanted = mayWrite ? make(o) : [];
    const key = JSON.stringify(wanted.map((w) => w.title + w.label));
    if (cell.dataset.made === key) return;
    const hadFocus = cell.contains(document.activeElement);
    cell.dataset.made = key;
    cell.replaceChildren(...wanted.map((w) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = w.title;
      button.setAttribute("aria-label", w.label);
      button.addEventListener("click", () => act(w));
      return button;
    }));
    if (hadFocus && cell.firstChild) cell.firstChild.focus();
  }};
}

async function act(action) {
  if (!await confirmed(action.question, action.title)) return;
  try {
    await ask("POST", action.path, action.body);
    say(action.label + ": done");
  } catch (error) {
    say(action.label + ": " + error.message, "bad");
  }
  update();
}

/* A promise of the answer to the open question; null after the "close" event of its dialog. */
let answer = null;

async function confirmed(question, verb) {
  const dialog = $("ask"), from = document.activeElement;
  while (answer) await answer;
  set($("question"), question);
  set($("yes"), verb);
  dialog.returnValue = "";
  dialog.showModal();
  answer = new Promise((resolve) => dialog.addEventListener("close", () => {
    answer = null;
    if (from && from.isConnected) from.focus();
    resolve(dialog.returnValue === "yes");
  }, {once: true}));
  return answer;
}

function say(text, kind = "") {
  set($("message"), text);
  $("message").className = kind;
}

