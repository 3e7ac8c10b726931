// The dashboard: reads the admin API every two seconds and changes slots through it.
import { get, send, signedIn, signOut } from "./api.js";
import { byId, cell, cards, bar, line, number, since, row, replace } from "./draw.js";
import { scrape } from "./metrics.js";
import { showDetail } from "./detail.js";
import { confirmed } from "./confirm.js";

const every = 2000;
const kept = 60; // samples of a rate

const rates = new Map(); // decision → { total, perSecond, samples }
let last; // the scrape before
let slots = []; // of the chosen pool, as listed
let cursor = "";
let pages = 1;
let sort = { by: "slot", up: true };

const columns = [
  { by: "slot", title: "Slot", of: (s) => s.slot },
  { by: "state", title: "State", of: stateOf },
  { by: "taken", title: "Taken", of: (s) => (s.capacity ? (s.confirmed + s.held) / s.capacity : -1) },
  { by: "available", title: "Available", of: (s) => s.available ?? -1, number: true },
  { by: "capacity", title: "Capacity", of: (s) => s.capacity ?? -1, number: true },
  { by: "confirmed", title: "Confirmed", of: (s) => s.confirmed, number: true },
  { by: "held", title: "Held", of: (s) => s.held, number: true },
  { by: "inflight", title: "At the backend", of: (s) => s.inflight, number: true },
];

export function stateOf(s) {
  if (s.closed) return "closed";
  if (s.opens_at && new Date(s.opens_at) > new Date()) return "not open yet";
  if (s.dirty) return "not verified";
  if (s.full) return "full, says the backend";
  if (s.available === 0) return "sold out";
  return s.available === null ? "learned" : "open";
}

function problem(text) {
  const p = byId("problem");
  p.hidden = !text;
  if (p.textContent !== text) p.textContent = text;
}

async function showStatus() {
  const s = await get("v1/status");
  const mode = byId("mode");
  mode.textContent = s.draining ? "draining" : s.mode;
  mode.className = "pill " + (s.draining ? "bad" : s.mode === "normal" ? "good" : "warn");
  byId("build").textContent = `${s.version}, configuration ${s.revision}, up ${since(s.started_at)}`;
  const waiting = Object.values(s.queue_waiting).reduce((a, b) => a + b, 0);
  const list = [
    ["Store breaker", s.breakers.store, s.breakers.store !== "closed"],
    ["Upstream breaker", s.breakers.upstream, s.breakers.upstream !== "closed"],
    ["Waiting in queues", number(waiting)],
    ["Settlements waiting", number(s.settle_backlog), s.settle_backlog > 0],
  ];
  if (s.settle_lost > 0) list.push(["Settlements lost", number(s.settle_lost), true]);
  for (const [pool, bound] of Object.entries(s.bound)) {
    list.push([`Oversell bound, ${pool}`, bound === "backend" ? "what the backend allows" : bound + " units", true]);
  }
  return list;
}

async function showMetrics(list) {
  const now = await scrape();
  const decisions = now.sum("slotgate_requests_total", "decision");
  const seconds = last ? (now.at - last.at) / 1000 : 0;
  const before = last?.sum("slotgate_requests_total", "decision");
  for (const [decision, total] of decisions) {
    const r = rates.get(decision) ?? { samples: [] };
    r.total = total;
    // A gate that was restarted counts from nothing again.
    r.perSecond = seconds > 0 ? Math.max(0, total - (before.get(decision) ?? 0)) / seconds : 0;
    r.samples = [...r.samples, r.perSecond].slice(-kept);
    if (total > 0) rates.set(decision, r);
  }
  const rows = [...rates].sort((a, b) => b[1].total - a[1].total).map(([decision, r]) =>
    row([cell(decision, { head: true }), cell(number(r.perSecond, 1), { number: true }), cell(line(r.samples, `${decision}: ${number(r.perSecond, 1)} per second now`)), cell(number(r.total), { number: true })]));
  replace("rates", rows, "No request of a rule has come yet.", 4);

  const latency = [];
  for (const [title, name] of [["In the gate", "slotgate_gate_seconds"], ["At the backend", "slotgate_upstream_seconds"], ["Store call", "slotgate_store_seconds"]]) {
    const [middle, slow] = now.quantiles(name, last, [0.5, 0.99]);
    if (middle !== undefined) latency.push([`${title}, p50 · p99`, `${ms(middle)} · ${ms(slow)}`]);
  }
  cards("latency", latency);

  const drift = now.total("slotgate_drift_units");
  const oversold = now.total("slotgate_oversold_units");
  const debt = now.total("slotgate_debt_units");
  const differences = now.total("slotgate_report_differences");
  list.push(["Drift, units", number(drift)]);
  list.push(["Oversold, units", number(oversold), oversold > 0]);
  if (debt > 0) list.push(["In debt to truth, units", number(debt), true]);
  if (now.has("slotgate_report_differences")) list.push(["Last report, differences", number(differences), differences > 0]);
  list.push(["Requests refused at the edge", number(now.total("slotgate_edge_refusals_total"))]);
  cards("now", list);
  last = now;
}

function ms(seconds) {
  if (seconds === Infinity) return "over the scale";
  return `${number(seconds * 1000, seconds < 0.01 ? 2 : 0)} ms`;
}

async function showRules() {
  const { rules } = await get("v1/rules");
  const rows = rules.map((r) => {
    const choose = document.createElement("select");
    choose.setAttribute("aria-label", `Mode of ${r.name}`);
    choose.dataset.rule = r.name;
    for (const mode of new Set(["enforce", "shadow", "off", r.mode])) choose.append(new Option(mode, mode, false, mode === r.mode));
    choose.addEventListener("change", () => switchMode(r, choose));
    return row([cell(r.name, { head: true }), cell(r.action), cell(r.pool || "–"), cell(r.on_store_failure), cell(choose)]);
  });
  // Not under the hands of somebody who is choosing.
  if (!byId("rules").contains(document.activeElement)) replace("rules", rows, "There are no rules.", 5);
  choosePools([...new Set(rules.map((r) => r.pool).filter(Boolean))]);
}

async function switchMode(rule, choose) {
  const mode = choose.value;
  const text = mode === "off" ? "Its requests will then reach the backend ungated." : `It is ${rule.mode} now.`;
  const answer = await confirmed(`Switch ${rule.name} to ${mode}?`, text, `Switch to ${mode}`);
  if (!answer) {
    choose.value = rule.mode;
    return;
  }
  await act(() => send("PUT", `v1/rules/${encodeURIComponent(rule.name)}/mode`, { mode }));
  choose.blur();
}

// act does what an operator asked for, and shows what came of it.
export async function act(change) {
  try {
    await change();
    problem("");
  } catch (e) {
    problem(e.message);
    return;
  }
  await refresh(true);
}

function choosePools(pools) {
  const select = byId("pool");
  if ([...select.options].map((o) => o.value).join("\n") === pools.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...pools.map((p) => new Option(p, p, false, p === chosen)));
}

async function loadSlots() {
  const pool = byId("pool").value;
  slots = [];
  cursor = "";
  if (!pool) return;
  for (let page = 0; page < pages; page++) {
    const part = await get(`v1/slots?limit=500&pool=${encodeURIComponent(pool)}&cursor=${encodeURIComponent(cursor)}`);
    const known = new Set(slots.map((s) => s.slot)); // one that moved may be listed twice
    slots.push(...part.slots.filter((s) => !known.has(s.slot)));
    cursor = part.cursor;
    if (!cursor) break;
  }
}

function showSlots() {
  const wanted = byId("search").value.trim().toLowerCase();
  const column = columns.find((c) => c.by === sort.by);
  const compare = (a, b) => {
    const [x, y] = [column.of(a), column.of(b)];
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return sort.up ? order : -order;
  };
  const shown = slots.filter((s) => s.slot.toLowerCase().includes(wanted)).sort(compare);
  const rows = shown.slice(0, 500).map((s) => {
    const link = document.createElement("a");
    link.href = `#/${encodeURIComponent(s.pool)}/${encodeURIComponent(s.slot)}`;
    link.textContent = s.slot;
    return row(columns.map((c) => {
      switch (c.by) {
        case "slot": return cell(link, { head: true });
        case "taken": return cell(bar(s));
        case "state": return cell(stateOf(s));
        default: return cell(s[c.by] === null ? "–" : number(s[c.by]), { number: true });
      }
    }));
  });
  const focused = byId("slots").contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  replace("slots", rows, wanted ? "No slot of this pool has that in its name." : "No slot of this pool was seen yet.", columns.length);
  if (focused) byId("slots").querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  byId("count").textContent = shown.length === slots.length ? `${number(slots.length)} slots` : `${number(shown.length)} of ${number(slots.length)} slots`;
  byId("more").hidden = !cursor;
}

function headSlots() {
  byId("slots-head").replaceChildren(...columns.map((c) => {
    const th = document.createElement("th");
    th.scope = "col";
    if (c.number) th.className = "number";
    if (c.by === sort.by) th.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = c.title;
    button.addEventListener("click", () => {
      sort = { by: c.by, up: sort.by === c.by ? !sort.up : c.by === "slot" || c.by === "state" };
      headSlots();
      showSlots();
      byId("slots-head").children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(button);
    return th;
  }));
}

function chosenSlot() {
  const parts = location.hash.split("/");
  return parts.length === 3 ? parts.slice(1).map(decodeURIComponent) : null;
}

let busy = false;
async function refresh(now = false) {
  if (busy && !now || document.hidden && !now) return;
  busy = true;
  try {
    await showMetrics(await showStatus());
    await showRules();
    const chosen = chosenSlot();
    byId("main").hidden = Boolean(chosen);
    byId("detail").hidden = !chosen;
    if (chosen) {
      await showDetail(...chosen, act);
    } else {
      await loadSlots();
      showSlots();
    }
    byId("forget").hidden = !signedIn();
    problem("");
  } catch (e) {
    problem(e.message);
    if (e.unreachable) {
      byId("mode").textContent = "not reachable";
      byId("mode").className = "pill bad";
    }
  } finally {
    busy = false;
  }
}

byId("filter").addEventListener("submit", (e) => e.preventDefault());
byId("search").addEventListener("input", showSlots);
byId("pool").addEventListener("change", () => {
  pages = 1;
  refresh(true);
});
byId("more").addEventListener("click", () => {
  pages++;
  refresh(true);
});
byId("forget").addEventListener("click", () => {
  signOut();
  refresh(true);
});
window.addEventListener("hashchange", async () => {
  await refresh(true);
  (chosenSlot() ? byId("detail-title") : byId("main")).focus();
});
document.addEventListener("visibilitychange", () => refresh());

headSlots();
refresh(true);
setInterval(refresh, every);
