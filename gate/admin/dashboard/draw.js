// What the page is made of. Text is only ever set as text.
export const byId = (id) => document.getElementById(id);

export function number(n, digits = 0) {
  return n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

export function since(time) {
  const s = Math.max(0, (Date.now() - new Date(time)) / 1000);
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
export const time = (t) => (t ? clock.format(new Date(t)) : "–");

// setText says nothing anew to a screen reader where nothing is new.
export function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

export function cell(content, { head = false, number = false } = {}) {
  const td = document.createElement(head ? "th" : "td");
  if (head) td.scope = "row";
  if (number) td.className = "number";
  td.append(content);
  return td;
}

export function row(cells) {
  const tr = document.createElement("tr");
  tr.append(...cells);
  return tr;
}

export function code(text) {
  const node = document.createElement("code");
  node.textContent = text;
  return node;
}

// badge is a word whose kind (good, warn, bad or none) shows in its colour too.
export function badge(text, kind) {
  const node = document.createElement("span");
  node.className = `badge ${kind}`;
  node.textContent = text;
  return node;
}

// replace fills a table's body.
export function replace(id, rows, empty, columns) {
  if (rows.length === 0) {
    const td = cell(empty);
    td.colSpan = columns;
    td.className = "quiet";
    rows = [row([td])];
  }
  patch(byId(id), rows);
}

// patch changes what differs and leaves the rest, so that nobody who reads, selects or
// is in it is disturbed. What is in focus stays so by its data-key, should it have moved.
function patch(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  children.forEach((child, i) => {
    const was = parent.children[i];
    if (!was) {
      parent.append(child);
    } else if (!was.isEqualNode(child)) {
      if (was.tagName === "TR" && was.children.length === child.children.length) patch(was, [...child.children]);
      else was.replaceWith(child);
    }
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
  if (focused && !(focused.isConnected && parent.contains(focused))) {
    const now = [...parent.querySelectorAll("[data-key]")].find((node) => node.dataset.key === focused.dataset.key);
    now?.focus({ preventScroll: true });
  }
}

// cards writes [title, value, warn] as a list.
export function cards(id, list) {
  patch(byId(id), list.map(([title, value, warn]) => {
    const box = document.createElement("div");
    if (warn) box.className = "warn";
    const dt = document.createElement("dt");
    const dd = document.createElement("dd");
    dt.textContent = title;
    dd.textContent = value;
    box.append(dt, dd);
    return box;
  }));
}

function svg(name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// bar shows how much of a slot is taken.
export function bar(s) {
  if (s.capacity === null) return "not known";
  const picture = svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `${s.confirmed} confirmed and ${s.held} held of ${s.capacity}` });
  const whole = Math.max(s.capacity, s.confirmed + s.held, 1);
  const taken = (100 * s.confirmed) / whole;
  const held = (100 * s.held) / whole;
  picture.append(
    svg("rect", { class: "free", width: 100, height: 10 }),
    svg("rect", { class: "taken", width: taken, height: 10 }),
    svg("rect", { class: "held", x: taken, width: held, height: 10 }),
  );
  return picture;
}

// line draws samples, oldest first.
export function line(samples, label) {
  const width = samples.length - 1;
  const picture = svg("svg", { class: "line", viewBox: `0 0 ${width} 20`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const most = Math.max(...samples, 1);
  picture.append(svg("path", { d: "M" + samples.map((v, i) => `${i} ${(19 - (18 * v) / most).toFixed(2)}`).join("L") }));
  return picture;
}
