// What the page says.

// table is a body's rows as a person reads them; a bar or line reads as its label.
export function table(page, id) {
  return page.locator(`#${id}`).evaluate((body) => [...body.rows].map((row) => [...row.cells].map((cell) => {
    const picture = cell.querySelector("svg");
    return picture ? picture.getAttribute("aria-label") : cell.innerText.trim();
  })));
}

// cards are the values of a list by their titles.
export function cards(page, id) {
  return page.locator(`#${id}`).evaluate((list) => Object.fromEntries(
    [...list.children].map((box) => [box.querySelector("dt").innerText, box.querySelector("dd").innerText])));
}

export const inNumbers = (text) => Number(text.replaceAll(",", ""));

// rowOf is a slot of the API as the table has to show it.
export function rowOf(s) {
  const or = (n) => (n === null ? "–" : n.toLocaleString("en"));
  const taken = s.capacity === null ? "not known" : `${s.confirmed} confirmed and ${s.held} held of ${s.capacity}`;
  return [s.slot, stateOf(s), taken, or(s.available), or(s.capacity), or(s.confirmed), or(s.held), or(s.inflight), or(s.waiting), or(s.rejected)];
}

function stateOf(s) {
  if (s.closed) return "closed";
  if (s.dirty) return "not verified";
  if (s.full) return "full, says the backend";
  if (s.available === null) return "learned";
  return s.available === 0 ? "sold out" : "open";
}

// decisionsIn adds up slotgate_requests_total by decision.
export function decisionsIn(metrics) {
  const totals = {};
  for (const [, decision, n] of metrics.matchAll(/^slotgate_requests_total\{decision="([^"]+)",rule="[^"]+"\} (\S+)$/gm)) {
    if (Number(n) > 0) totals[decision] = (totals[decision] ?? 0) + Number(n);
  }
  return totals;
}

// isWithin tells whether an element's box is inside of the window, or fills it.
export function isWithin(locator) {
  return locator.evaluate((node) => {
    const { left, right, top, bottom, width, height } = node.getBoundingClientRect();
    return width > 0 && left >= 0 && right <= innerWidth && (height < innerHeight ? top >= 0 && bottom <= innerHeight : top < innerHeight && bottom > 0);
  });
}
