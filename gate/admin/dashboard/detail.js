// One slot: what is taken, by whom, and what happened to it.
import { get, send } from "./api.js";
import { byId, cell, cards, number, replace, row } from "./draw.js";
import { confirmed } from "./confirm.js";
import { stateOf } from "./app.js";

let shown; // { path, slot, act }

const time = (t) => (t ? new Date(t).toLocaleString() : "–");

export async function showDetail(pool, name, act) {
  const path = `v1/slots/${encodeURIComponent(pool)}/${encodeURIComponent(name)}`;
  const slot = await get(path);
  const { entries } = await get(path + "/ledger?limit=100");
  shown = { path, slot, act };
  byId("detail-title").textContent = `${pool}: ${name}`;
  const list = [
    ["State", stateOf(slot), stateOf(slot) === "not verified"],
    ["Available", slot.available === null ? "not known" : number(slot.available)],
    ["Capacity", slot.capacity === null ? "not known" : number(slot.capacity)],
    ["Confirmed", number(slot.confirmed)],
    ["Held", number(slot.held)],
    ["At the backend", number(slot.inflight)],
    ["Source", slot.source],
  ];
  if (slot.checked_at) list.push(["Truth was looked at", time(slot.checked_at)]);
  if (slot.opens_at) list.push(["Opens at", time(slot.opens_at)]);
  cards("detail-facts", list);
  for (const button of byId("detail").querySelectorAll("[data-do]")) {
    button.hidden = button.dataset.do === "close" ? slot.closed : button.dataset.do === "open" ? !slot.closed : slot.source === "truth" && button.dataset.do !== "resync";
  }

  const units = slot.holds.reduce((sum, h) => sum + h.units, 0);
  byId("holds-count").textContent = units < slot.confirmed + slot.held ? `newest ${number(slot.holds.length)}` : number(slot.holds.length);
  const focused = byId("holds").contains(document.activeElement) ? document.activeElement.dataset.hold : null;
  replace("holds", slot.holds.map((h) => row([
    cell(code(h.id), { head: true }), cell(h.subject || "–"), cell(number(h.units), { number: true }), cell(h.state),
    cell(h.reference || "–"), cell(time(h.expires_at)), cell(releaseButton(h)),
  ])), "Nothing is held here.", 7);
  if (focused) byId("holds").querySelector(`[data-hold="${CSS.escape(focused)}"]`)?.focus();
  replace("ledger", entries.map((e) => row([
    cell(time(e.time)), cell(code(e.hold)), cell(number(e.units), { number: true }), cell(e.from || "–"), cell(e.to), cell(e.cause),
  ])), "Nothing has happened here yet.", 6);
}

function code(text) {
  const node = document.createElement("code");
  node.textContent = text;
  return node;
}

function releaseButton(hold) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Release";
  button.dataset.hold = hold.id;
  button.setAttribute("aria-label", `Release hold ${hold.id} of ${hold.subject || "nobody named"}`);
  button.addEventListener("click", async () => {
    const { path, act } = shown;
    if (await confirmed("Release this hold?", `Its ${number(hold.units)} units are then sold again. The booking in the backend stays as it is.`, "Release")) {
      await act(() => send("DELETE", `${path}/holds/${encodeURIComponent(hold.id)}`));
    }
  });
  return button;
}

const actions = {
  close: ["Close this slot?", "Bookings are then answered with closed.", "Close", () => ({ closed: true })],
  open: ["Open this slot?", "Bookings are then decided again.", "Open", () => ({ closed: false })],
  unset: ["Use the configured capacity?", "The slot's own number is dropped.", "Use it", () => ({ capacity: null })],
};

async function actOn(what) {
  const { path, slot, act } = shown;
  if (what === "resync") {
    if (await confirmed("Resync this slot?", "With truth it is looked at now. Without, its counters are declared right, and it has its configured capacity.", "Resync")) {
      await act(() => send("POST", path + "/resync"));
    }
    return;
  }
  if (what === "capacity") {
    const units = await confirmed("Set the capacity?", `It is ${slot.capacity ?? "not known"} now, and ${slot.confirmed + slot.held} are taken.`, "Set", { label: "Units in all", value: slot.capacity ?? "" });
    if (units !== false) await act(() => send("PUT", path, { capacity: Number(units) }));
    return;
  }
  const [title, text, yes, body] = actions[what];
  if (await confirmed(title, text, yes)) await act(() => send("PUT", path, body()));
}

for (const button of byId("detail").querySelectorAll("[data-do]")) {
  button.addEventListener("click", () => actOn(button.dataset.do));
}
