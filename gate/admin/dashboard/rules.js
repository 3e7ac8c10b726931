// The rules, and the mode that each is in.
import { get, send } from "./api.js";
import { change } from "./confirm.js";
import { byId, cell, number, plural, replace, row } from "./draw.js";

let shown = new Map(); // name → rule

export async function showRules({ status }) {
  const { rules } = await get("v1/rules");
  shown = new Map(rules.map((r) => [r.name, r]));
  replace("rules", rules.map((r) => row([
    cell(r.name, { head: true }), cell(r.action), cell(r.pool || "–"), cell(r.on_store_failure), cell(modes(r)),
    cell(inShadow(status.shadow.find((s) => s.rule === r.name))),
  ])), "There are no rules.", 6);
  return rules;
}

function modes(rule) {
  const choose = document.createElement("select");
  choose.setAttribute("aria-label", `Mode of ${rule.name}`);
  choose.dataset.key = rule.name;
  for (const mode of new Set(["enforce", "shadow", "off", rule.mode])) {
    choose.append(new Option(mode, mode, mode === rule.mode, mode === rule.mode));
  }
  return choose;
}

function inShadow(report) {
  if (!report || report.requests === 0) return "–";
  return `${plural(report.requests, "request", "requests")}, would have rejected ${number(report.would_have_rejected)}, units oversold ${number(report.would_have_oversold)}`;
}

byId("rules").addEventListener("change", async ({ target }) => {
  const rule = shown.get(target.dataset.key);
  const mode = target.value;
  const done = await change({
    title: `Switch ${rule.name} to ${mode}?`, yes: `Switch to ${mode}`,
    text: mode === "off" ? "Its requests will then reach the backend ungated." : `It is ${rule.mode} now.`,
  }, () => send("PUT", `v1/rules/${encodeURIComponent(rule.name)}/mode`, { mode }), `${rule.name} is switched to ${mode}.`);
  if (!done) target.value = rule.mode;
});
