import assert from "node:assert/strict";
import { cards, table } from "./page.mjs";
import { ask, until } from "./talk.mjs";

export async function outage(browser) {
  await browser.scene("a gate that does not answer, and does again", async (page, context) => {
    await until("slots", async () => (await table(page, "slots")).length > 3);
    await context.setOffline(true);
    await page.getByText("not reachable", { exact: true }).waitFor();
    await page.getByRole("alert").getByText("The gate does not answer.").waitFor();
    assert.ok((await table(page, "slots")).length > 3, "what was known is still to be read");
    await context.setOffline(false);
    await page.getByText("normal", { exact: true }).waitFor();
    await until("no problem", async () => (await page.getByRole("alert").innerText()) === "");
  }, { expected: [/net::ERR_INTERNET_DISCONNECTED/] });

  await browser.scene("a store that is away, and is back", async (page) => {
    await ask("store away");
    let n = 0;
    await until("the page says so", async () => {
      await browser.book(17, `meanwhile-${n++}`);
      return (await page.locator("#mode").innerText()) === "degraded";
    });
    const now = await until("the bound", async () => {
      const now = await cards(page, "now");
      return now["Oversell bound"] !== "0 units" && now;
    });
    assert.equal(now["Oversell bound"], "the backend's");
    await until("an open breaker", async () => (await cards(page, "now"))["Store breaker"] !== "closed");
    await page.getByRole("alert").getByText(/The gate answers 503/).waitFor();
    await ask("store back");
    await page.getByText("normal", { exact: true }).waitFor();
    await until("all as before", async () => {
      const now = await cards(page, "now");
      return now["Store breaker"] === "closed" && now["Oversell bound"] === "0 units" && now["Settlements waiting"] === "0" &&
        (await page.getByRole("alert").innerText()) === "";
    });
  }, { expected: [/status of 503/] });
}
