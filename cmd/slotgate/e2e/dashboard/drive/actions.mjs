import assert from "node:assert/strict";
import { cards, isWithin, table } from "./page.mjs";
import { until } from "./talk.mjs";

// answer presses a button of the dialog that has this title.
async function answer(page, title, button, units) {
  const dialog = page.getByRole("dialog", { name: title });
  await dialog.waitFor();
  if (units !== undefined) await dialog.getByRole("textbox", { name: "Units in all" }).fill(units);
  await dialog.getByRole("button", { name: button, exact: true }).click();
}

const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const done = (page, text) => page.locator("#done").filter({ hasText: text }).waitFor();

export async function actions(browser) {
  await browser.scene("a slot is closed and opened, and only when that is confirmed", async (page) => {
    const changes = [];
    page.on("request", (r) => { if (r.method() !== "GET") changes.push(`${r.method()} ${new URL(r.url()).pathname}`); });
    await press(page, "Close slot");
    await answer(page, "Close this slot?", "Cancel");
    await press(page, "Close slot");
    await page.keyboard.press("Escape");
    await until("no dialog", async () => (await page.locator("dialog[open]").count()) === 0);
    assert.deepEqual(changes, []);
    assert.equal((await browser.slot("lessons", "15")).closed, false);

    await press(page, "Close slot");
    await answer(page, "Close this slot?", "Close");
    await done(page, "The slot is closed.");
    assert.deepEqual(changes, ["PUT /v1/slots/lessons/15"]);
    assert.equal((await browser.slot("lessons", "15")).closed, true);
    assert.equal((await cards(page, "detail-facts")).State, "closed");
    assert.equal((await browser.book(15, "late")).decision, "closed");

    await press(page, "Open slot");
    await answer(page, "Open this slot?", "Open");
    await done(page, "The slot is open.");
    assert.equal((await browser.slot("lessons", "15")).closed, false);
    assert.notEqual((await browser.book(15, "late")).decision, "closed");
  }, { at: "#/lessons/15" });

  await browser.scene("a capacity is set, and given back", async (page) => {
    await press(page, "Set capacity");
    await answer(page, "Set the capacity?", "Set", "many");
    assert.equal(await page.getByRole("dialog", { name: "Set the capacity?" }).isVisible(), true, "a word is no number");
    await answer(page, "Set the capacity?", "Set", "60");
    await done(page, "The capacity is set.");
    const slot = await browser.slot("lessons", "2");
    assert.deepEqual([slot.capacity, slot.source, slot.available], [60, "operator", 60 - slot.confirmed]);
    const facts = await cards(page, "detail-facts");
    assert.deepEqual([facts.Capacity, facts["Capacity from"], facts.Available], ["60", "operator", String(slot.available)]);
    assert.equal((await browser.book(2, "welcome")).decision, "admitted");

    await press(page, "Set capacity");
    await answer(page, "Set the capacity?", "Set", "99999999999999999999");
    await page.getByRole("alert").getByText(/The gate answers 400: "capacity" must be/).waitFor();
    assert.equal((await browser.slot("lessons", "2")).capacity, 60);

    await press(page, "Configured capacity");
    await answer(page, "Use the configured capacity?", "Use it");
    await done(page, "The slot has its configured capacity.");
    const again = await browser.slot("lessons", "2");
    assert.deepEqual([again.capacity, again.source], [40, "config"]);
    assert.equal(await page.getByRole("button", { name: "Configured capacity" }).isVisible(), false);
    assert.equal(await page.getByRole("alert").innerText(), "", "the problem was of the action before");
  }, { at: "#/lessons/2", expected: [/status of 400/] });

  await browser.scene("a resync asks truth", async (page) => {
    const before = await browser.slot("workshops", "20");
    await page.getByRole("button", { name: "Resync" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Set capacity" }).isVisible(), false, "truth has the number");
    assert.equal((await browser.book(20, "around-the-gate", browser.settings.backend)).status, 201);
    await press(page, "Resync");
    await answer(page, "Resync this slot?", "Resync");
    await done(page, "The slot is resynced.");
    const after = await browser.slot("workshops", "20");
    assert.equal(after.available, before.available - 1);
    assert.ok(new Date(after.checked_at) > new Date(before.checked_at));
    assert.equal((await cards(page, "detail-facts")).Available, String(after.available));
  }, { at: "#/workshops/20" });

  await browser.scene("a hold is released, and its unit sold again", async (page) => {
    const before = await browser.slot("lessons", "1");
    assert.equal(before.available, 0);
    assert.equal((await browser.book(1, "in-vain")).decision, "sold-out");
    const [hold] = before.holds;
    const release = page.getByRole("button", { name: `Release hold ${hold.id} of ${hold.subject}` });
    await release.click();
    const dialog = page.getByRole("dialog", { name: "Release this hold?" });
    await until("Cancel to be in focus", () => dialog.getByRole("button", { name: "Cancel" }).evaluate((b) => b === document.activeElement));
    await answer(page, "Release this hold?", "Cancel");
    assert.equal((await browser.slot("lessons", "1")).holds.length, before.holds.length);

    await release.click();
    await answer(page, "Release this hold?", "Release");
    await done(page, `Hold ${hold.id} is released.`);
    const after = await browser.slot("lessons", "1");
    assert.deepEqual([after.available, after.confirmed], [1, before.confirmed - 1]);
    assert.ok(!(await table(page, "holds")).some((row) => row[0] === hold.id));
    assert.equal((await table(page, "ledger"))[0][1], hold.id);
    await until("focus that is not lost", () => page.locator("#detail-title").evaluate((h) => h === document.activeElement));
    assert.equal((await browser.book(1, "in-luck")).decision, "admitted");
    assert.equal((await browser.book(1, "too-late")).decision, "sold-out");
  }, { at: "#/lessons/1" });

  await browser.scene("nothing is changed without the token", async (page) => {
    await page.evaluate(() => sessionStorage.setItem("slotgate-token", "of-somebody-else"));
    await page.getByRole("dialog", { name: "Sign in" }).waitFor(); // at the next refresh
    assert.ok(await isWithin(page.getByRole("dialog", { name: "Sign in" })));
    const refused = await page.evaluate(() => fetch("v1/slots/lessons/3", { method: "PUT", body: '{"closed":true}' }).then((r) => r.status));
    assert.equal(refused, 401);
    assert.equal((await browser.slot("lessons", "3")).closed, false);
  }, { at: "#/lessons/3", expected: [/status of 401/] });

  await browser.scene("a rule is switched", async (page) => {
    const choose = page.getByLabel("Mode of book-workshop");
    const mode = async () => (await browser.api("GET", "v1/rules")).body.rules.find((r) => r.name === "book-workshop").mode;
    const isIn = async (want) => {
      await until(`${want} on the page`, async () => (await choose.inputValue()) === want); // once the dialog has closed
      assert.equal(await mode(), want);
    };
    await choose.selectOption("off");
    await answer(page, "Switch book-workshop to off?", "Cancel");
    await isIn("enforce");
    await choose.selectOption("shadow");
    await answer(page, "Switch book-workshop to shadow?", "Switch to shadow");
    await done(page, "book-workshop is switched to shadow.");
    await isIn("shadow");
    assert.equal((await browser.book(21, "seen-in-shadow")).decision, "shadow");
    await until("what shadow has seen", async () => (await table(page, "rules"))[1][5].startsWith("1 request"));
    await choose.selectOption("enforce");
    await answer(page, "Switch book-workshop to enforce?", "Switch to enforce");
    await done(page, "book-workshop is switched to enforce.");
    await isIn("enforce");
  });
}
