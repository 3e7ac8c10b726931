// The browser, and what is watched of every page.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { step } from "./talk.mjs";

export async function openBrowser(settings) {
  const { chromium } = createRequire(settings.tools + "/")("playwright-core");
  const browser = await chromium.launch({
    executablePath: settings.chromium,
    chromiumSandbox: !settings.root,
    // No name leads anywhere: what the page needs, it has from the gate.
    args: ["--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
  return new Browser(browser, settings);
}

class Browser {
  constructor(browser, settings) {
    this.browser = browser;
    this.settings = settings;
    this.addresses = new Set(); // origins that have answered pages
  }

  // scene runs a step on a fresh page, which is signed in unless signedIn is false, and
  // checks that its console stayed clean, but for what matches one of expected.
  async scene(name, run, { signedIn = true, at = "", expected = [], ...options } = {}) {
    await step(name, async () => {
      const context = await this.browser.newContext({
        viewport: { width: 1280, height: 900 }, locale: "en-GB", timezoneId: "UTC", ...options,
      });
      context.setDefaultTimeout(60_000);
      const said = [];
      context.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") said.push(m.text()); });
      context.on("weberror", (e) => said.push(String(e.error())));
      context.on("response", (r) => this.addresses.add(new URL(r.url()).origin));
      try {
        const page = await context.newPage();
        if (signedIn) await context.addInitScript((token) => sessionStorage.setItem("slotgate-token", token), this.settings.token);
        await page.goto(`${this.settings.admin}/${at}`);
        if (signedIn) await page.locator("#build").filter({ hasText: "configuration" }).waitFor();
        await run(page, context);
      } finally {
        await context.close();
      }
      const unexpected = said.filter((text) => !expected.some((pattern) => pattern.test(text)));
      assert.deepEqual(unexpected, [], "the console has errors");
    });
  }

  // api calls the admin API as an operator does without the dashboard.
  async api(method, path, body, token = this.settings.token) {
    const answer = await fetch(`${this.settings.admin}/${path}`, {
      method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  }

  async slot(pool, slot) {
    const { status, body } = await this.api("GET", `v1/slots/${pool}/${slot}`);
    assert.equal(status, 200);
    return body;
  }

  // book asks the gate, or the backend behind its back, for a seat.
  async book(lesson, student, base = this.settings.url) {
    const answer = await fetch(`${base}/api/lessons/${lesson}/bookings`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ student_id: student }),
    });
    await answer.text();
    return { status: answer.status, decision: answer.headers.get("Gate-Decision") };
  }

  checkAddresses() {
    assert.deepEqual([...this.addresses], [this.settings.admin]);
  }

  close() { return this.browser.close(); }
}
