// picture keeps the page as a PNG of up to 200 kB.
import assert from "node:assert/strict";
import { statSync } from "node:fs";

export async function picture(page, folder, name, { colorScheme, width = 1280, height = 900 }) {
  const before = page.viewportSize();
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height });
  const path = `${folder}/${name}.png`;
  await page.screenshot({ path });
  await page.setViewportSize(before);
  assert.ok(statSync(path).size < 200_000, `${path} has ${statSync(path).size} bytes`);
}
