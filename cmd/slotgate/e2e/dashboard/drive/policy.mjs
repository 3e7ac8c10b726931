import assert from "node:assert/strict";
import { until } from "./talk.mjs";

export async function policy(browser) {
  await browser.scene("the page's policy keeps out what is not the gate's", async (page) => {
    const { headers } = await fetch(`${browser.settings.admin}/`);
    assert.match(headers.get("Content-Security-Policy"), /^default-src 'none'; script-src 'self'; style-src 'self';/);
    const elsewhere = browser.settings.backend;
    await page.evaluate(async (elsewhere) => {
      globalThis.refused = [];
      document.addEventListener("securitypolicyviolation", (e) => globalThis.refused.push(e.effectiveDirective));
      const add = (name, attributes, text = "") => {
        const node = Object.assign(document.createElement(name), { textContent: text });
        for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
        document.body.append(node);
      };
      add("script", {}, "globalThis.ran = true");
      add("script", { src: `${elsewhere}/x.js` });
      add("img", { src: `${elsewhere}/x.png` });
      add("img", { src: "nothing", onerror: "globalThis.ran = true" });
      add("p", { style: "color: red" });
      await fetch(`${elsewhere}/api/lessons/1`).catch(() => {});
    }, elsewhere);
    const wanted = ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"];
    await until("all of them to be refused", async () => {
      const list = new Set(await page.evaluate(() => globalThis.refused));
      return wanted.every((directive) => list.has(directive));
    });
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  }, { expected: [/Content Security Policy/, /violates the following/, /status of 401/, /status of 404/, /Failed to fetch/] });
}
