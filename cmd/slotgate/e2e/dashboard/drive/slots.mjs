import assert from "node:assert/strict";
import { cards, inNumbers, table } from "./page.mjs";
import { until } from "./talk.mjs";

// Names that a client may choose.
const hostile = ['<img src=x onerror="document.title=1">', "体育课 09:00", "a/b?c#d %41 &amp; \"q\""];

const names = async (page) => (await table(page, "slots")).map((row) => row[0]);

export async function slots(browser) {
  await browser.scene("slots are searched and sorted", async (page) => {
    await until("all lessons", async () => (await names(page)).length === 16);
    const search = page.getByRole("searchbox", { name: "Search" });
    await search.fill("1");
    assert.deepEqual(await names(page), ["1", "10", "11", "12", "13", "14", "15", "16"]);
    assert.equal(await page.locator("#count").innerText(), "8 of 16 slots");
    await search.fill("nowhere");
    assert.deepEqual(await names(page), ["No slot of this pool has that in its name."]);
    await search.fill("");
    assert.equal(await page.locator("#count").innerText(), "16 slots");

    const numeric = ["Available", "Capacity", "Confirmed", "Held", "At the backend", "Waiting", "Rejected"];
    for (const [column, title] of ["Slot", "State", "Taken", ...numeric].entries()) {
      const header = page.getByRole("columnheader", { name: title, exact: true });
      for (let click = 0; click < 2; click++) {
        await header.getByRole("button").click();
        const up = (await header.getAttribute("aria-sort")) === "ascending";
        const values = (await table(page, "slots")).map((row) => valueOf(row[column], title));
        const sorted = [...values].sort((a, b) => (typeof a === "string" ? a.localeCompare(b, "en") : a - b) * (up ? 1 : -1));
        assert.deepEqual(values, sorted, `${title}, ${up ? "upwards" : "downwards"}`);
      }
      assert.equal(await page.locator("th[aria-sort]").count(), 1);
    }
  });

  await browser.scene("names are text", async (page, context) => {
    for (const name of hostile) {
      const made = await browser.api("PUT", `v1/slots/lessons/${encodeURIComponent(name)}`, { capacity: 7 });
      assert.equal(made.status, 200, name);
    }
    await until("them in the table", async () => {
      const listed = await names(page);
      return hostile.every((name) => listed.includes(name));
    });
    assert.equal(await page.locator("img").count(), 0);
    for (const name of hostile) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name: `lessons: ${name}`, exact: true }).waitFor();
      await until("its facts", async () => (await cards(page, "detail-facts")).Capacity === "7");
      assert.equal(await page.title(), `lessons: ${name} – Slotgate`);
      await page.goBack();
      await until("the table", () => page.locator("#slots-table").isVisible());
      await until("its focus", () => page.locator("#slots-title").evaluate((h) => h === document.activeElement));
    }
  });

  await browser.scene("a slot's page has its holds and its ledger", async (page) => {
    await page.getByRole("link", { name: "12", exact: true }).click();
    await page.getByRole("heading", { name: "lessons: 12", exact: true }).waitFor();
    await until("its focus", () => page.locator("#detail-title").evaluate((h) => h === document.activeElement));
    assert.equal(await page.locator("#overview").isVisible(), false);
    const slot = await browser.slot("lessons", "12");
    const { body: { entries } } = await browser.api("GET", "v1/slots/lessons/12/ledger?limit=100");
    assert.ok(slot.holds.length > 10 && entries.length > slot.holds.length);
    await until("its holds", async () => (await table(page, "holds")).length === slot.holds.length);
    const facts = await cards(page, "detail-facts");
    assert.deepEqual([facts.State, facts.Available, facts.Capacity, facts.Confirmed, facts.Held, facts["Capacity from"]],
      [slot.available === 0 ? "sold out" : "open", ...[slot.available, slot.capacity, slot.confirmed, slot.held].map(String), slot.source]);
    assert.deepEqual((await table(page, "holds")).map((row) => row.slice(0, 5)),
      slot.holds.map((h) => [h.id, h.subject, String(h.units), h.state, h.reference]));
    assert.deepEqual(await table(page, "ledger"), entries.map((e) => [
      e.time.slice(0, 19).replace("T", " "), e.hold, String(e.units), e.from || "–", e.to, e.cause]));
    await page.getByRole("link", { name: "All slots" }).click();
    await until("the table", () => page.locator("#slots-table").isVisible());
    await until("its focus", () => page.locator("#slots-title").evaluate((h) => h === document.activeElement));
  });

  await browser.scene("a slot that was never seen says so", async (page) => {
    await page.getByRole("alert").getByText(/The gate answers 404/).waitFor();
  }, { at: "#/lessons/nowhere", expected: [/status of 404/] });
}

function valueOf(text, title) {
  if (title === "State") return text;
  if (title !== "Taken") return inNumbers(text);
  const [confirmed, held, capacity] = text.match(/\d+/g).map(Number);
  return (confirmed + held) / capacity;
}
