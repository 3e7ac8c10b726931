// What this program says to the test that started it: a JSON line for each step that has
// ended, and for each question, which is answered by a line.
import { createInterface } from "node:readline";

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

// step runs one and tells how it ended. The steps after one that failed run as well.
export async function step(name, run) {
  const began = performance.now();
  let error = "";
  try {
    await run();
  } catch (e) {
    error = e.stack ?? String(e);
  }
  say({ step: name, error, took: Math.round(performance.now() - began) });
}

// ask returns the answer.
export async function ask(what, value = null) {
  say({ ask: what, value });
  const { value: line, done } = await answers.next();
  if (done) throw new Error("nobody answers");
  return JSON.parse(line);
}

// until asks until there is something, for a minute, and returns it.
export async function until(what, look) {
  const end = performance.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`in vain: ${what}`);
    await new Promise((again) => setTimeout(again, 25));
  }
}
