import assert from "node:assert/strict";
import { until } from "./talk.mjs";

const pages = ["", "#/lessons/12", "#/workshops/20"];

// loaded is when the page at an address has all of its parts.
const loaded = (page, at) => page.locator(at ? "#ledger tr" : "#slots tr").nth(3).waitFor();

export async function reading(browser) {
  await browser.scene("light and dark can be read", async (page) => {
    for (const at of pages) {
      await page.goto(`${browser.settings.admin}/${at}`);
      await loaded(page, at);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(await page.evaluate(tooFaint), [], `${colorScheme} ${at}`);
      }
    }
  });

  await browser.scene("a screen reader is told what is what", async (page) => {
    for (const at of pages) {
      await page.goto(`${browser.settings.admin}/${at}`);
      await loaded(page, at);
      assert.deepEqual(await page.evaluate(unnamed), [], at);
      assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1);
      for (const landmark of ["banner", "main"]) assert.equal(await page.getByRole(landmark).count(), 1, landmark);
    }
    await page.goto(`${browser.settings.admin}/`);
    for (const name of ["Slots", "Decisions per second", "Rules"]) await page.getByRole("table", { name }).waitFor();
    await loaded(page, "");
    const [row] = await page.getByRole("row", { name: /^12 / }).all();
    await row.getByRole("rowheader", { name: "12" }).waitFor();
    await row.getByRole("img", { name: /^\d+ confirmed and \d+ held of 40$/ }).waitFor();
  });

  await browser.scene("a refresh without news disturbs nobody", async (page) => {
    await loaded(page, "");
    await page.evaluate(() => {
      globalThis.news = [];
      const note = (changes) => changes.forEach((c) => globalThis.news.push(c.target.id || c.target.parentNode?.id || c.target.nodeName));
      for (const node of document.querySelectorAll("[role=status], [role=alert], #slots, #rules")) {
        new MutationObserver(note).observe(node, { childList: true, subtree: true, characterData: true });
      }
      getSelection().selectAllChildren(document.querySelector("#slots tr:nth-child(3)"));
    });
    await page.getByRole("link", { name: "12", exact: true }).focus();
    const selected = await page.evaluate(() => getSelection().toString());
    await page.waitForResponse((r) => r.url().includes("/v1/slots"));
    await page.waitForResponse((r) => r.url().includes("/v1/status")); // the answer before it is drawn by now
    assert.deepEqual(await page.evaluate(() => globalThis.news), []);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "12");
    assert.equal(await page.evaluate(() => getSelection().toString()), selected);
  });

  await browser.scene("a phone is wide enough", async (page) => {
    for (const at of pages) {
      await page.goto(`${browser.settings.admin}/${at}`);
      await loaded(page, at);
      for (const width of [390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        await until("no scrolling sideways", () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        assert.deepEqual(await page.evaluate(tooSmall), [], `${width} ${at}`);
        for (const name of at ? [] : ["Pool", "Search", "Mode of book-lesson"]) {
          const control = page.getByLabel(name, { exact: true });
          await control.scrollIntoViewIfNeeded();
          const box = await control.boundingBox();
          assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} is cut off at ${width}`);
        }
      }
    }
  }, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
}

// tooFaint finds text of less contrast than WCAG 2.2 asks for (1.4.3, level AA). It runs in
// the page.
function tooFaint() {
  const known = new Map(); // color → its channels
  const channels = (color) => {
    if (!known.has(color)) {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d");
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(color);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = channels(getComputedStyle(node).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || node.getClientRects().length === 0) continue;
    const style = getComputedStyle(node);
    const [a, b] = [luminance(channels(style.color)), luminance(ground(node))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.add(`${text.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...faint];
}

// unnamed finds controls, tables and pictures without a name, and headers without scope.
function unnamed() {
  const named = (node) => node.getAttribute("aria-label") ?? node.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("") ??
    node.labels?.[0]?.textContent ?? node.textContent;
  const visible = (node) => node.getClientRects().length > 0;
  return [
    ...[...document.querySelectorAll("a, button, input, select, table, dialog, section, [role=region], [role=img]")].filter((node) => visible(node) && !named(node).trim()),
    ...[...document.querySelectorAll("th:not([scope])")],
  ].map((node) => node.outerHTML.slice(0, 80));
}

// tooSmall finds what a finger misses (WCAG 2.2, 2.5.8), but for links in text.
function tooSmall() {
  return [...document.querySelectorAll("button, input, select, tbody a")]
    .filter((node) => node.getClientRects().length > 0)
    .map((node) => [node, node.closest("th")?.tagName ? node.closest("th").getBoundingClientRect() : node.getBoundingClientRect()])
    .filter(([, box]) => box.height < 24 || box.width < 24)
    .map(([node]) => node.outerHTML.slice(0, 80));
}
