import assert from "node:assert/strict";
import { cards, decisionsIn, inNumbers, rowOf, table } from "./page.mjs";
import { picture } from "./picture.mjs";
import { ask, until } from "./talk.mjs";

const looks = 3; // at the page, each after another refresh

export async function storm(browser) {
  await browser.scene("in a storm the counts are those of the API", async (page) => {
    const latest = listen(page);
    await ask("storm");
    const seen = { held: 0, perSecond: 0 };
    for (let look = 0, before; look < looks; look++) {
      await until(`refresh ${look} in which the page shows what the API has just said`, async () => {
        if (latest.slots === before || !latest.metrics) return false;
        const [slots, rates, now] = [latest.slots, latest.metrics, latest.status];
        if (!(await shows(page, slots, rates, now)) || latest.slots !== slots) return false;
        before = slots;
        return true;
      });
      seen.held = Math.max(seen.held, ...before.map((s) => s.held));
      seen.perSecond = Math.max(seen.perSecond, ...(await table(page, "rates")).map((row) => inNumbers(row[1] ?? "0")));
    }
    assert.ok(seen.held > 0 && seen.perSecond > 0, `nothing moved: ${JSON.stringify(seen)}`);
    for (const [place, middle, slow, perSecond] of await table(page, "latency")) {
      assert.ok(inNumbers(middle) > 0 && inNumbers(slow) >= inNumbers(middle) && inNumbers(perSecond) > 0, `${place}: ${middle} ${slow} ${perSecond}`);
    }
    const lines = await page.locator("#rates path").evaluateAll((paths) => paths.map((path) => path.getBBox().height));
    assert.ok(lines.length > 2 && lines.every((height) => height > 0), `flat lines: ${lines}`);
    if (browser.settings.screenshots) await pictures(page, browser.settings.screenshots);
  });

  await browser.scene("after it they are what its clients were told, and the database says", async (page) => {
    const sent = await ask("storm over");
    await until("all of its requests", async () => {
      const rates = await table(page, "rates");
      return rates.reduce((sum, row) => sum + inNumbers(row[3] ?? "0"), 0) === sent;
    });
    const pools = {};
    for (const pool of ["workshops", "lessons"]) {
      await page.getByLabel("Pool").selectOption(pool);
      const want = await until(`the slots of ${pool}`, async () => {
        const { body } = await browser.api("GET", `v1/slots?pool=${pool}&limit=1000`);
        // Looks at truth go on for a moment.
        if (pool === "workshops" && body.slots.some((s) => s.confirmed + s.available !== browser.settings.seats)) return false;
        const rows = body.slots.map(rowOf).sort((a, b) => a[0] - b[0]);
        return JSON.stringify(await table(page, "slots")) === JSON.stringify(rows) && rows;
      });
      pools[pool] = want.map(([slot, , , available, capacity, confirmed, held]) => ({
        slot, capacity: inNumbers(capacity), available: inNumbers(available), confirmed: inNumbers(confirmed), held: inNumbers(held),
      }));
    }
    const decisions = Object.fromEntries((await table(page, "rates")).map((row) => [row[0], inNumbers(row[3])]));
    await ask("compare", { decisions, ...pools });

    const rejected = Object.entries(decisions).filter(([d]) => !["admitted", "replayed"].includes(d)).reduce((sum, [, n]) => sum + n, 0);
    let said = 0;
    for (const pool of ["workshops", "lessons"]) {
      await page.getByLabel("Pool").selectOption(pool);
      await page.locator("#of-pool").filter({ hasText: "rejected" }).waitFor();
      const [, waiting, n] = /^(\S+) waiting, (\S+) rejected/.exec(await until(`the slots of ${pool}`, async () => {
        const rows = await table(page, "slots");
        return rows.length === pools[pool].length && rows[0][0] === pools[pool][0].slot && page.locator("#of-pool").innerText();
      }));
      assert.equal(waiting, "0");
      said += inNumbers(n);
    }
    assert.equal(said, rejected);
  });
}

// listen keeps what the API answers the page.
function listen(page) {
  const latest = {};
  page.on("response", async (answer) => {
    const path = new URL(answer.url()).pathname;
    try {
      if (path === "/v1/slots") latest.slots = (await answer.json()).slots;
      if (path === "/v1/status") latest.status = await answer.json();
      if (path === "/metrics") latest.metrics = await answer.text();
    } catch { /* the page has gone */ }
  });
  return latest;
}

async function shows(page, slots, metrics, status) {
  const rows = slots.map(rowOf).sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
  if (JSON.stringify(await table(page, "slots")) !== JSON.stringify(rows)) return false;
  const totals = Object.fromEntries((await table(page, "rates")).filter((row) => row.length > 1).map((row) => [row[0], inNumbers(row[3])]));
  const want = decisionsIn(metrics);
  if (Object.keys(want).length !== Object.keys(totals).length || Object.keys(want).some((d) => want[d] !== totals[d])) return false;
  const now = await cards(page, "now");
  const waiting = Object.values(status.queue_waiting).reduce((a, b) => a + b, 0);
  return inNumbers(now["Waiting in queues"]) === waiting && now["Store breaker"] === status.breakers.store &&
    now["Upstream breaker"] === status.breakers.upstream && now["Oversell bound"] === "0 units" &&
    inNumbers(now["Settlements waiting"]) === status.settle_backlog &&
    (await page.locator("#mode").innerText()) === status.mode && (await page.locator("#build").innerText()).includes(status.revision);
}

async function pictures(page, folder) {
  await picture(page, folder, "light", { colorScheme: "light" });
  await picture(page, folder, "dark", { colorScheme: "dark" });
  await picture(page, folder, "phone", { colorScheme: "light", width: 390, height: 1500 });
}
