// Asks before anything is changed, and says what came of it.
import { byId, setText } from "./draw.js";

// A problem stands until the next thing of its kind goes well: a look at the gate, or
// what an operator asks for.
const problems = new Map();

export function problem(kind, text) {
  if ((problems.get(kind) ?? "") === text) return;
  problems.set(kind, text);
  byId("problems").replaceChildren(...[...problems.values()].filter(Boolean).map((said) => {
    const p = document.createElement("p");
    p.textContent = said;
    return p;
  }));
}

let refresh;
export const afterChange = (show) => { refresh = show; };

// change asks { title, text, yes }, and for a number where there is a field { label,
// value }; danger: what cannot be taken back. It then does it and shows the page as it is
// after that. It returns whether anything was done.
export async function change(question, run, done) {
  const answer = await confirmed(question);
  if (answer === null) return false;
  setText("done", "");
  problem("action", "");
  let failed = "";
  try {
    await run(answer);
  } catch (e) {
    failed = e.message;
  }
  await refresh();
  setText("done", failed ? "" : done);
  problem("action", failed);
  // The button that was pressed may be gone by now.
  const shows = (node) => node.getClientRects().length > 0;
  if (document.activeElement === document.body || !shows(document.activeElement)) {
    [...document.querySelectorAll("h2[tabindex]")].find(shows)?.focus();
  }
  return true;
}

// confirmed resolves to null, or to what was entered, "" without a field.
function confirmed({ title, text, yes, field, danger = false }) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  byId("confirm-yes").className = danger ? "danger" : "";
  byId("confirm-field").hidden = !field;
  const input = byId("confirm-value");
  input.required = Boolean(field);
  input.value = field?.value ?? "";
  if (field) byId("confirm-label").textContent = field.label;
  dialog.returnValue = "";
  dialog.showModal();
  (field ? input : danger ? byId("confirm-no") : byId("confirm-yes")).focus();
  if (field) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? input.value : null), { once: true });
  });
}
