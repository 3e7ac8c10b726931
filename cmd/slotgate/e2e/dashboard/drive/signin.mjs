import assert from "node:assert/strict";
import { table } from "./page.mjs";
import { until } from "./talk.mjs";

const nothing = "No request of a rule has come yet.";

export async function signIn(browser) {
  const { token } = browser.settings;

  await browser.scene("a wrong token is refused", async (page) => {
    const dialog = page.getByRole("dialog", { name: "Sign in" });
    const input = dialog.getByRole("textbox", { name: "Admin token" });
    await dialog.getByText("This gate asks for its admin.token.").waitFor();
    for (const wrong of ["x", token.slice(0, -1), token + "x", token.toUpperCase()]) {
      await input.fill(wrong);
      const refused = page.waitForResponse((r) => r.status() === 401);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await refused;
      await dialog.getByText("That was not this gate's admin.token.").waitFor();
      await until("an empty field", async () => (await input.inputValue()) === "");
    }
    await input.press("Escape"); // closes it, and it is there again
    await dialog.waitFor();
    for (const id of ["now", "rates", "slots", "rules"]) assert.equal(await page.locator(`#${id} > *`).count(), 0, `${id} shows something`);
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, "a wrong token is kept");

    for (const [method, path, body] of [
      ["GET", "v1/status"], ["GET", "v1/slots?pool=lessons"], ["GET", "metrics"],
      ["PUT", "v1/slots/lessons/2", { closed: true }], ["POST", "v1/slots/lessons/2/resync"], ["DELETE", "v1/slots/lessons/2/holds/x"],
    ]) {
      assert.equal((await browser.api(method, path, body, "wrong")).status, 401, `${method} ${path}`);
    }
  }, { signedIn: false, expected: [/status of 401/] });

  await browser.scene("the token opens it, and is gone after signing out", async (page) => {
    await page.getByRole("textbox", { name: "Admin token" }).fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("normal", { exact: true }).waitFor();
    await until("slots", async () => (await table(page, "slots")).length > 1);
    assert.deepEqual(await table(page, "rates"), [[nothing]]);
    assert.equal(await page.evaluate(() => localStorage.length + document.cookie.length), 0, "it is kept beyond the tab");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("dialog", { name: "Sign in" }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await until("an empty page", async () => (await page.locator("#slots > *").count()) === 0);
  }, { signedIn: false });
}
