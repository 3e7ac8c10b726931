// What the page is made of. Text is only ever set as text.
export const byId = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en");
export const number = (n, digits = 0) => (digits ? n.toFixed(digits) : whole.format(Math.round(n)));

export function since(time) {
  const s = Math.max(0, (Date.now() - new Date(time)) / 1000);
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
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

export function replace(id, rows, empty, columns) {
  if (rows.length === 0) {
    const td = cell(empty);
    td.colSpan = columns;
    td.className = "quiet";
    rows = [row([td])];
  }
  byId(id).replaceChildren(...rows);
}

// cards writes [title, value, warn] as a list.
export function cards(id, list) {
  byId(id).replaceChildren(...list.map(([title, value, warn]) => {
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
  const picture = svg("svg", { class: "line", viewBox: "0 0 60 20", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const most = Math.max(...samples, 1);
  const points = samples.map((v, i) => `${60 - samples.length + i + 1} ${(19 - (18 * v) / most).toFixed(2)}`);
  picture.append(svg("path", { d: "M" + points.join("L") }));
  return picture;
}
