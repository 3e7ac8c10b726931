// One slot: what is taken, by whom, and what happened to it.
import { get, send } from "./api.js";
import { change } from "./confirm.js";
import { bar, byId, cards, cell, code, number, plural, replace, row, setText, time } from "./draw.js";
import { stateOf } from "./slots.js";

let shown; // { path, slot }; undefined until there is one

export async function showDetail(pool, name) {
  const path = `v1/slots/${encodeURIComponent(pool)}/${encodeURIComponent(name)}`;
  setText("detail-title", `${pool}: ${name}`);
  if (shown?.path !== path) {
    shown = undefined;
    byId("detail-body").hidden = true;
  }
  const at = location.hash;
  const [slot, { entries }] = await Promise.all([get(path), get(path + "/ledger?limit=100")]);
  if (location.hash !== at) return; // another one was chosen meanwhile
  shown = { path, slot };
  byId("detail-body").hidden = false;
  byId("detail-bar").replaceChildren(bar(slot));
  const state = stateOf(slot);
  const list = [
    ["State", state.text, state.kind === "warn" || state.kind === "bad"],
    ["Available", slot.available === null ? "not known" : number(slot.available)],
    ["Capacity", slot.capacity === null ? "not known" : number(slot.capacity)],
    ["Confirmed", number(slot.confirmed)],
    ["Held", number(slot.held)],
    ["At the backend", number(slot.inflight)],
    ["Waiting", number(slot.waiting)],
    ["Rejected", number(slot.rejected)],
    ["Capacity from", slot.source],
  ];
  if (slot.checked_at) list.push(["Truth was looked at", time(slot.checked_at)]);
  if (slot.opens_at) list.push(["Opens at", time(slot.opens_at)]);
  cards("detail-facts", list);
  for (const button of byId("detail").querySelectorAll("[data-do]")) button.hidden = !applies(button.dataset.do, slot);
  showHolds(slot);
  replace("ledger", entries.map((e) => row([
    cell(time(e.time)), cell(code(e.hold)), cell(number(e.units), { number: true }), cell(e.from || "–"), cell(e.to), cell(e.cause),
  ])), "Nothing has happened here yet.", 6);
}

function applies(what, slot) {
  switch (what) {
    case "close": return !slot.closed;
    case "open": return slot.closed;
    case "capacity": return slot.source !== "truth";
    case "unset": return slot.source === "operator";
    default: return true;
  }
}

function showHolds(slot) {
  const units = slot.holds.reduce((sum, h) => sum + h.units, 0);
  setText("holds-count", units < slot.confirmed + slot.held ? `newest ${number(slot.holds.length)}` : number(slot.holds.length));
  replace("holds", slot.holds.map((h) => row([
    cell(code(h.id), { head: true }), cell(h.subject || "–"), cell(number(h.units), { number: true }), cell(h.state),
    cell(h.reference || "–"), cell(time(h.expires_at)), cell(releaseButton(h)),
  ])), "Nothing is held here.", 7);
}

function releaseButton(hold) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Release";
  button.dataset.key = hold.id;
  button.setAttribute("aria-label", `Release hold ${hold.id} of ${hold.subject || "nobody named"}`);
  return button;
}

byId("holds").addEventListener("click", ({ target }) => {
  const { path, slot } = shown;
  const hold = slot.holds.find((h) => h.id === target.dataset.key);
  if (!hold) return;
  change({
    title: "Release this hold?", yes: "Release", danger: true,
    text: `Hold ${hold.id} of ${hold.subject || "nobody named"}. ${hold.units === 1 ? "Its unit is" : `Its ${number(hold.units)} units are`} then sold again. The booking in the backend stays as it is.`,
  }, () => send("DELETE", `${path}/holds/${encodeURIComponent(hold.id)}`), `Hold ${hold.id} is released.`);
});

const actions = {
  close: () => change({ title: "Close this slot?", text: "Bookings are then answered with closed.", yes: "Close" },
    put({ closed: true }), "The slot is closed."),
  open: () => change({ title: "Open this slot?", text: "Bookings are then decided again.", yes: "Open" },
    put({ closed: false }), "The slot is open."),
  unset: () => change({ title: "Use the configured capacity?", text: "The slot's own number is dropped.", yes: "Use it" },
    put({ capacity: null }), "The slot has its configured capacity."),
  resync: () => change({
    title: "Resync this slot?", yes: "Resync",
    text: "With truth it is looked at now. Without, its counters are declared right, and it has its configured capacity.",
  }, () => send("POST", shown.path + "/resync"), "The slot is resynced."),
  capacity: () => change({
    title: "Set the capacity?", yes: "Set",
    text: `It is ${shown.slot.capacity ?? "not known"} now, and ${plural(shown.slot.confirmed + shown.slot.held, "unit is", "units are")} taken.`,
    field: { label: "Units in all", value: shown.slot.capacity ?? "" },
  }, (units) => put({ capacity: Number(units) })(), "The capacity is set."),
};

const put = (body) => () => send("PUT", shown.path, body);

for (const button of byId("detail").querySelectorAll("[data-do]")) {
  button.addEventListener("click", () => actions[button.dataset.do]());
}
