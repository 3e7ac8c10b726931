// Drives the dashboard of a running gate, scene by scene. Its argument is JSON: where the
// gate and the backend are, the token, the browser, and where Playwright is installed.
import { openBrowser } from "./browser.mjs";
import { actions } from "./actions.mjs";
import { keyboard } from "./keyboard.mjs";
import { outage } from "./outage.mjs";
import { policy } from "./policy.mjs";
import { reading } from "./reading.mjs";
import { signIn } from "./signin.mjs";
import { slots } from "./slots.mjs";
import { storm } from "./storm.mjs";
import { step } from "./talk.mjs";

const settings = JSON.parse(process.argv[2]);
const browser = await openBrowser(settings);

for (const scene of [signIn, storm, slots, actions, keyboard, reading, policy, outage]) await scene(browser);

await step("nothing was asked of any other address", () => browser.checkAddresses());
await browser.close();
process.exit(0); // standard input is still open
