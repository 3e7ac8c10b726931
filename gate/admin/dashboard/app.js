// The dashboard: reads the admin API every two seconds and changes slots through it.
import { signedIn, signOut } from "./api.js";
import { afterChange, problem } from "./confirm.js";
import { showDetail } from "./detail.js";
import { byId, setText } from "./draw.js";
import { showNow, unreachable } from "./now.js";
import { showRules } from "./rules.js";
import { choosePools, showSlots } from "./slots.js";

const every = 2000;

// chosenSlot is the slot that the address names: #/POOL/SLOT.
function chosenSlot() {
  const parts = location.hash.split("/");
  return parts.length === 3 ? parts.slice(1).map(decodeURIComponent) : null;
}

let under = 0; // refreshes under way

async function refresh() {
  under++;
  try {
    const [at, chosen] = [location.hash, chosenSlot()];
    byId("overview").hidden = Boolean(chosen);
    byId("detail").hidden = !chosen;
    document.title = chosen ? `${chosen.join(": ")} – Slotgate` : "Slotgate";
    const now = await showNow();
    const rules = await showRules(now);
    choosePools(rules);
    byId("sign-out").hidden = !signedIn();
    if (location.hash !== at) return; // what is chosen now is looked at by another refresh
    if (chosen) await showDetail(...chosen);
    else await showSlots({ ...now, rules });
    problem("look", "");
  } catch (e) {
    problem("look", e.message);
    if (e.unreachable) unreachable();
  } finally {
    under--;
  }
}

function heading() {
  return byId(chosenSlot() ? "detail-title" : "slots-title");
}

afterChange(refresh);
byId("skip").addEventListener("click", (e) => {
  e.preventDefault(); // the address says which slot is shown
  heading().focus();
});
byId("sign-out").addEventListener("click", () => {
  signOut();
  location.reload(); // nothing stays to be read
});
window.addEventListener("hashchange", async () => {
  setText("done", "");
  problem("action", "");
  const at = location.hash;
  await refresh();
  if (location.hash === at) heading().focus(); // else who reads has gone on, and must not be taken back
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});

refresh();
setInterval(() => {
  if (under === 0 && !document.hidden) refresh();
}, every);
