// How the gate is at the moment: mode, breakers, rates, latency.
import { get } from "./api.js";
import { problem } from "./confirm.js";
import { byId, cards, cell, line, number, plural, replace, row, setText, since } from "./draw.js";
import { scrape } from "./metrics.js";

const shownSamples = 60; // two minutes
const shortest = 1000; // milliseconds between two samples: a rate over less says nothing
const latencyOver = 15; // scrapes: half a minute

const rates = new Map(); // decision → { total, samples }
const scrapes = []; // oldest first

export async function showNow() {
  const [status, metrics] = await Promise.all([get("v1/status"), scrape()]);
  showHead(status);
  cards("now", [...ofStatus(status), ...ofMetrics(metrics, status.reports)]);
  const samples = !scrapes.length || metrics.at - scrapes.at(-1).at >= shortest;
  showRates(metrics, samples);
  if (samples) scrapes.push(metrics);
  if (scrapes.length > latencyOver + 1) scrapes.shift();
  showLatency(metrics);
  return { status, metrics };
}

function showHead(s) {
  const mode = s.draining ? "draining" : s.mode;
  setText("mode", mode);
  byId("mode").className = "pill " + (s.draining ? "bad" : s.mode === "normal" ? "good" : "warn");
  setText("build", `${s.version}, configuration ${s.revision}, up ${since(s.started_at)}`);
  problem("reload", s.reload && !s.reload.success ? `The last reload failed ${since(s.reload.at)} ago; configuration ${s.revision} stays in effect. ${s.reload.error}` : "");
}

export function unreachable() {
  setText("mode", "not reachable");
  byId("mode").className = "pill bad";
}

function ofStatus(s) {
  const waiting = Object.values(s.queue_waiting).reduce((a, b) => a + b, 0);
  const list = [
    ["Store breaker", s.breakers.store, s.breakers.store !== "closed"],
    ["Upstream breaker", s.breakers.upstream, s.breakers.upstream !== "closed"],
    ["Oversell bound", bound(s.bound), Object.keys(s.bound).length > 0],
    ["Waiting in queues", number(waiting)],
    ["Settlements waiting", number(s.settle_backlog), s.settle_backlog > 0],
  ];
  if (s.settle_lost > 0) list.push(["Settlements lost", number(s.settle_lost), true]);
  if (s.gates.running !== null) {
    const differ = s.gates.differing > 0;
    list.push(["Gates of this store", number(s.gates.running) + (differ ? `, ${number(s.gates.differing)} with other rules` : ""), differ]);
  }
  return list;
}

// bound is what the gate may admit at most beyond what there is: nothing while it counts.
function bound(pools) {
  const list = Object.entries(pools).map(([pool, n]) => [pool, n === "backend" ? "the backend's" : plural(Number(n), "unit", "units")]);
  const words = new Set(list.map(([, text]) => text));
  if (list.length === 0) return "0 units";
  return words.size === 1 ? list[0][1] : list.map(([pool, text]) => `${pool}: ${text}`).join(", ");
}

function ofMetrics(m, reports) {
  const oversold = m.total("slotgate_oversold_units");
  const debt = m.total("slotgate_debt_units");
  const list = [
    ["Drift, units", number(m.total("slotgate_drift_units"))],
    ["Oversold, units", number(oversold), oversold > 0],
  ];
  if (debt > 0) list.push(["In debt to truth, units", number(debt), true]);
  if (m.has("slotgate_looks_total")) list.push(lastReport(reports));
  list.push(["Refused at the edge", number(m.total("slotgate_edge_refusals_total"))]);
  return list;
}

function lastReport(reports) {
  const title = "Last reconcile report";
  if (reports.length === 0) return [title, "none yet"];
  const sum = (of) => reports.reduce((all, r) => all + r[of], 0);
  const [differences, damage] = [sum("differences"), sum("damage")];
  const latest = reports.map((r) => r.at).sort().at(-1);
  const text = plural(differences, "difference", "differences") + (damage > 0 ? `, ${number(damage)} damaged` : "");
  return [title, `${text}, ${since(latest)} ago`, differences + damage > 0];
}

function showRates(now, sample) {
  const before = scrapes.at(-1);
  const old = before?.sum("slotgate_requests_total", "decision") ?? new Map();
  const seconds = before ? (now.at - before.at) / 1000 : Infinity;
  for (const [decision, total] of now.sum("slotgate_requests_total", "decision")) {
    const r = rates.get(decision) ?? { samples: Array(shownSamples).fill(0) };
    if (total === 0 && !rates.has(decision)) continue;
    r.total = total;
    // A gate that was restarted counts from nothing again.
    if (sample) r.samples = [...r.samples.slice(1), Math.max(0, total - (old.get(decision) ?? 0)) / seconds];
    rates.set(decision, r);
  }
  const rows = [...rates].sort((a, b) => b[1].total - a[1].total).map(([decision, { samples, total }]) => {
    const perSecond = number(samples.at(-1), 1);
    return row([
      cell(decision, { head: true }), cell(perSecond, { number: true }),
      cell(line(samples, `${decision}: ${perSecond} per second now`)), cell(number(total), { number: true }),
    ]);
  });
  replace("rates", rows, "No request of a rule has come yet.", 4);
}

function showLatency(now) {
  const before = scrapes[0];
  const places = [["In the gate", "slotgate_gate_seconds"], ["At the backend", "slotgate_upstream_seconds"], ["Store call", "slotgate_store_seconds"]];
  replace("latency", places.map(([title, name]) => {
    const [middle, slow] = now.quantiles(name, before, [0.5, 0.99]);
    const perSecond = now === before ? 0 : now.perSecond(name + "_count", before);
    return row([
      cell(title, { head: true }), cell(milliseconds(middle), { number: true }),
      cell(milliseconds(slow), { number: true }), cell(number(perSecond, 1), { number: true }),
    ]);
  }), "", 4);
}

function milliseconds(seconds) {
  if (seconds === undefined) return "–";
  if (seconds === Infinity) return "off scale";
  return number(seconds * 1000, seconds < 0.01 ? 2 : seconds < 0.1 ? 1 : 0);
}
