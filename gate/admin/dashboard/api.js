// The admin API. The token, where one is needed, stays in this tab.
import { byId } from "./draw.js";

const kept = "slotgate-token";

export const signedIn = () => sessionStorage.getItem(kept) !== null;
export const signOut = () => sessionStorage.removeItem(kept);

let asking; // one dialog for all that wait
let refused = false; // the token that was here last

async function request(method, path, body) {
  for (;;) {
    const token = sessionStorage.getItem(kept);
    if (token === null && document.body.dataset.token === "required") {
      asking ??= signIn().finally(() => { asking = undefined; });
      await asking;
      continue;
    }
    const headers = {};
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
    } catch {
      const e = new Error("The gate does not answer. Is it running, and is this its admin address?");
      e.unreachable = true;
      throw e;
    }
    if (answer.status === 401) {
      document.body.dataset.token = "required";
      // Unless somebody has signed in while this was under way.
      if (token === sessionStorage.getItem(kept)) {
        refused = token !== null;
        signOut();
      }
      continue;
    }
    if (!answer.ok) throw await failure(answer);
    return answer;
  }
}

// failure is what a problem document (RFC 9457) says.
async function failure(answer) {
  const text = await answer.text();
  let detail = text;
  try {
    detail = JSON.parse(text).detail ?? text;
  } catch { /* no problem document */ }
  return new Error(`The gate answers ${answer.status}: ${detail}`);
}

function signIn() {
  const dialog = byId("sign-in");
  const input = byId("token");
  byId("sign-in-why").textContent = refused ? "That was not this gate's admin.token." : "This gate asks for its admin.token.";
  input.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      // Without it there is nothing to see: who closes the dialog is asked again.
      if (dialog.returnValue === "sign-in") sessionStorage.setItem(kept, input.value);
      input.value = "";
      resolve();
    }, { once: true });
  });
}

export const get = async (path) => (await request("GET", path)).json();
export const text = async (path) => (await request("GET", path)).text();
export const send = async (method, path, body) => (await request(method, path, body)).json();
