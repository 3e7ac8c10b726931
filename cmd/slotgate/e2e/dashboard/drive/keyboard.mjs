import assert from "node:assert/strict";
import { isWithin } from "./page.mjs";
import { until } from "./talk.mjs";

// focus describes what is in focus.
const focus = (page) => page.evaluate(() => {
  const node = document.activeElement;
  return node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent.trim();
});

// tabTo presses Tab until something is in focus, and checks on its way that each stop can
// be seen.
async function tabTo(page, name, key = "Tab") {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press(key);
    if (await page.evaluate(() => document.activeElement === document.body)) continue; // around the end of the page
    const stop = page.locator(":focus");
    assert.ok(await isWithin(stop), `${await focus(page)} is in focus and not to be seen`);
    assert.ok(await stop.evaluate((node) => getComputedStyle(node).outlineStyle !== "none"), `${await focus(page)} does not show that it is in focus`);
    if ((await focus(page)) === name) return;
  }
  assert.fail(`Tab does not come to ${name}`);
}

const inFocus = (page, name) => until(`${name} to be in focus`, async () => (await focus(page)) === name);
const noDialog = (page) => until("no dialog", async () => (await page.locator("dialog[open]").count()) === 0);

export async function keyboard(browser) {
  await browser.scene("everything is done by keyboard", async (page) => {
    await inFocus(page, "Admin token");
    await page.keyboard.type(browser.settings.token);
    await page.keyboard.press("Enter");
    await noDialog(page);
    await page.getByRole("link", { name: "16", exact: true }).waitFor();

    await tabTo(page, "Skip to the content");
    await page.keyboard.press("Enter");
    await inFocus(page, "Slots");
    await tabTo(page, "Search");
    await page.keyboard.type("16");
    await tabTo(page, "Available");
    await page.keyboard.press("Enter");
    assert.equal(await page.getByRole("columnheader", { name: "Available" }).getAttribute("aria-sort"), "descending");
    await inFocus(page, "Available");
    await tabTo(page, "16");
    await page.keyboard.press("Enter");
    await inFocus(page, "lessons: 16");

    await tabTo(page, "Close slot");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Close this slot?" }).waitFor();
    for (let i = 0; i < 6; i++) { // Tab stays in the dialog, or goes to the browser's own
      await page.keyboard.press("Tab");
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog")));
    }
    await page.keyboard.press("Escape");
    await noDialog(page);
    await inFocus(page, "Close slot");
    await page.keyboard.press("Enter");
    await inFocus(page, "Close");
    await page.keyboard.press("Enter");
    await inFocus(page, "lessons: 16"); // the button has gone
    assert.equal((await browser.slot("lessons", "16")).closed, true);
    await tabTo(page, "Open slot");
    await page.keyboard.press("Enter");
    await inFocus(page, "Open");
    await page.keyboard.press("Enter");
    await inFocus(page, "lessons: 16");
    assert.equal((await browser.slot("lessons", "16")).closed, false);

    await tabTo(page, "Set capacity");
    await page.keyboard.press("Enter");
    await inFocus(page, "Units in all");
    await page.keyboard.type("77"); // what was there is selected
    await page.keyboard.press("Enter");
    await page.locator("#done").filter({ hasText: "The capacity is set." }).waitFor();
    await inFocus(page, "Set capacity");
    assert.equal((await browser.slot("lessons", "16")).capacity, 77);

    const { holds: [hold] } = await browser.slot("lessons", "16");
    await tabTo(page, `Release hold ${hold.id} of ${hold.subject}`);
    await page.keyboard.press("Enter");
    await inFocus(page, "Cancel"); // what cannot be taken back is not the first choice
    await page.keyboard.press("Shift+Tab");
    await inFocus(page, "Release");
    await page.keyboard.press("Enter");
    await inFocus(page, "lessons: 16");
    assert.ok(!(await browser.slot("lessons", "16")).holds.some((h) => h.id === hold.id));

    await tabTo(page, "All slots", "Shift+Tab");
    await page.keyboard.press("Enter");
    await inFocus(page, "Slots");
    await tabTo(page, "Mode of book-lesson");
  }, { signedIn: false });

  await browser.scene("Tab comes to every control once, and out again", async (page) => {
    await page.getByRole("link", { name: "16", exact: true }).waitFor();
    const controls = "a, button, input, select";
    const wanted = await page.evaluate((controls) => {
      globalThis.stops = new Set();
      return [...document.querySelectorAll(controls)].filter((node) => node.getClientRects().length > 0).length;
    }, controls);
    let stops;
    for (let presses = 0; presses <= wanted; presses++) { // one of them leaves the page
      await page.keyboard.press("Tab");
      stops = await page.evaluate((controls) => {
        const node = document.activeElement;
        return (node.matches(controls) ? globalThis.stops.add(node) : globalThis.stops).size;
      }, controls);
    }
    assert.equal(stops, wanted);
  });
}
