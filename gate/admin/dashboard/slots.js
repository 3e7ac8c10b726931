// The table of a pool's slots.
import { get } from "./api.js";
import { badge, bar, byId, cell, number, plural, replace, row, setText } from "./draw.js";

const page = 500; // slots asked for, and shown, at once

// The decisions that are not the gate's own answer, beside the backend's failures.
const forwarded = new Set(["admitted", "replayed", "passthrough", "shadow"]);

let now; // what showSlots was given last
let slots = []; // of the chosen pool, as listed
let cursor = "";
let pages = 1;
let sort = { by: "slot", up: true };

const columns = [
  { by: "slot", title: "Slot", of: (s) => s.slot },
  { by: "state", title: "State", of: (s) => stateOf(s).text },
  { by: "taken", title: "Taken", of: (s) => (s.capacity ? (s.confirmed + s.held) / s.capacity : -1) },
  { by: "available", title: "Available", of: (s) => s.available ?? -1, number: true },
  { by: "capacity", title: "Capacity", of: (s) => s.capacity ?? -1, number: true },
  { by: "confirmed", title: "Confirmed", of: (s) => s.confirmed, number: true },
  { by: "held", title: "Held", of: (s) => s.held, number: true },
  { by: "inflight", title: "At the backend", of: (s) => s.inflight, number: true },
  { by: "waiting", title: "Waiting", of: (s) => s.waiting, number: true },
  { by: "rejected", title: "Rejected", of: (s) => s.rejected, number: true },
];

export function stateOf(s) {
  if (s.closed) return { text: "closed", kind: "bad" };
  if (s.opens_at && new Date(s.opens_at) > new Date()) return { text: "not open yet", kind: "bad" };
  if (s.dirty) return { text: "not verified", kind: "warn" };
  if (s.full) return { text: "full, says the backend", kind: "warn" };
  if (s.available === 0) return { text: "sold out", kind: "" };
  return s.available === null ? { text: "learned", kind: "warn" } : { text: "open", kind: "good" };
}

export function choosePools(rules) {
  const pools = [...new Set(rules.map((r) => r.pool).filter(Boolean))];
  const select = byId("pool");
  if ([...select.options].map((o) => o.value).join("\n") === pools.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...pools.map((p) => new Option(p, p, false, p === chosen)));
}

// ofPool is what one gate says of a whole pool: it counts requests by rule.
function ofPool(pool) {
  const { status, metrics, rules } = now;
  const names = new Set(rules.filter((r) => r.pool === pool).map((r) => r.name));
  let rejected = 0;
  for (const [decision, n] of metrics.sum("slotgate_requests_total", "decision", (l) => names.has(l.rule))) {
    if (!forwarded.has(decision) && !decision.startsWith("upstream-")) rejected += n;
  }
  return `${number(status.queue_waiting[pool] ?? 0)} waiting, ${number(rejected)} rejected since the gate started`;
}

// showSlots takes the status, the metrics and the rules of the moment.
export async function showSlots(moment = now) {
  now = moment;
  const pool = byId("pool").value;
  const listed = new Map(); // one that moved may be listed twice
  let next = "";
  for (let i = 0; pool && i < pages; i++) {
    const part = await get(`v1/slots?limit=${page}&pool=${encodeURIComponent(pool)}&cursor=${encodeURIComponent(next)}`);
    for (const s of part.slots) listed.set(s.slot, s);
    next = part.cursor;
    if (!next) break;
  }
  if (byId("pool").value !== pool) return; // another was chosen meanwhile
  [slots, cursor] = [[...listed.values()], next];
  draw();
}

function draw() {
  const wanted = byId("search").value.trim().toLowerCase();
  const found = slots.filter((s) => s.slot.toLowerCase().includes(wanted)).sort(compare);
  replace("slots", found.slice(0, page * pages).map(rowOf), nothing(byId("search").value.trim()), columns.length);
  const all = plural(slots.length, "slot", "slots") + (cursor ? ", and more" : "");
  setText("count", found.length === slots.length ? all : `${number(found.length)} of ${all}`);
  setText("of-pool", byId("pool").value ? ofPool(byId("pool").value) : "");
  byId("more").hidden = !cursor;
}

// nothing says why there is no row.
function nothing(wanted) {
  if (!wanted) return "No slot of this pool was seen yet.";
  if (!cursor) return "No slot of this pool has that in its name.";
  const said = document.createElement("span");
  said.append("No slot listed so far has that in its name. Look at ", linkTo({ pool: byId("pool").value, slot: wanted }), " itself, or show more.");
  return said;
}

function compare(a, b) {
  const column = columns.find((c) => c.by === sort.by);
  const [x, y] = [column.of(a), column.of(b)];
  const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
  return sort.up ? order : -order;
}

function linkTo(s) {
  const link = document.createElement("a");
  link.href = `#/${encodeURIComponent(s.pool)}/${encodeURIComponent(s.slot)}`;
  link.textContent = s.slot;
  link.dataset.key = s.slot;
  return link;
}

function rowOf(s) {
  return row(columns.map((c) => {
    switch (c.by) {
      case "slot": return cell(linkTo(s), { head: true });
      case "state": return cell(badge(stateOf(s).text, stateOf(s).kind));
      case "taken": return cell(bar(s));
      default: return cell(s[c.by] === null ? "–" : number(s[c.by]), { number: true });
    }
  }));
}

function drawHead() {
  byId("slots-head").replaceChildren(...columns.map((c) => {
    const th = document.createElement("th");
    th.scope = "col";
    if (c.number) th.className = "number";
    if (c.by === sort.by) th.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = c.title;
    button.addEventListener("click", () => {
      sort = { by: c.by, up: sort.by === c.by ? !sort.up : !c.number && c.by !== "taken" };
      drawHead();
      draw();
      byId("slots-head").children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(button);
    return th;
  }));
}

byId("filter").addEventListener("submit", (e) => e.preventDefault());
byId("search").addEventListener("input", draw);
byId("pool").addEventListener("change", () => {
  [slots, cursor, pages] = [[], "", 1];
  showSlots();
});
byId("more").addEventListener("click", () => {
  pages++;
  showSlots();
});
drawHead();
