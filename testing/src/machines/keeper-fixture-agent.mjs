/**
 * An agent for the keeper's tests: `keeper-fixture-agent.mjs DIRECTORY MODE`. In charge it extends the engine's primary
 * lease ten times a second and records each number; a file `offer` in the directory makes it hand over to one of the
 * mode in the file.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { uptime } from "node:os";
import { createInterface } from "node:readline";

const [directory, mode] = process.argv.slice(2);
const { HOLDFAST_AGENT_RUN: run, HOLDFAST_AGENT_PART: part, RIGHT_MS: rightMs } = process.env;
const socket = connect(`${directory}/keeper.sock`);
socket.on("close", () => process.exit(1));
const waiting = new Map();
let id = 0;
let number = 0;
let extending;

function ask(request) {
  id += 1;
  socket.write(`${JSON.stringify({ ...request, id })}\n`);
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function extend() {
  extending ??= setInterval(() => void extendOnce(), 100);
}

async function extendOnce() {
  number += 1;
  const mine = number;
  await ask({ op: "extend", name: "engine", number: mine, untilMs: uptime() * 1_000 + Number(rightMs) });
  appendFileSync(`${directory}/numbers`, `${mine} ${process.pid}\n`);
}

const on = {
  async ready() {
    clearInterval(extending);
    extending = undefined;
    try {
      const { gapMs } = await ask({ op: "yield", state: String(number) });
      writeFileSync(`${directory}/outcome`, `handed over in ${gapMs}`);
      if (mode !== "stays") process.exit(0);
    } catch (error) {
      extend();
      writeFileSync(`${directory}/outcome`, error.message);
    }
  },
  // oxlint-disable-next-line holdfast/names -- a state of the protocol
  gone: (reason) => writeFileSync(`${directory}/outcome`, reason),
  async charge(state) {
    if (mode === "crash-in-charge") process.exit(3);
    if (mode === "hang-in-charge") return;
    number = Number(state);
    await ask({ op: "settled", run });
    if (mode === "crash-when-settled") process.exit(4);
    extend();
  },
};

createInterface({ input: socket }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.event === "component") {
    if (message.component.name === "engine") number = Math.max(number, message.component.rightNumber);
  } else if (message.event === "successor") void on[message.state](message.reason);
  else if (message.event === "charge") void on.charge(message.state);
  else {
    const { resolve, reject } = waiting.get(message.id);
    if (message.ok) resolve(message);
    else reject(new Error(message.error));
  }
});

const { components } = await ask({ op: "status" });
number = components.find(({ name }) => name === "engine")?.rightNumber ?? 0;
if (part === "next") {
  if (mode === "crash") process.exit(2);
  if (mode !== "hang") await ask({ op: "ready", run });
} else {
  await ask({ op: "claim", run });
  extend();
}
setInterval(() => void lookForOffer(), 20);

async function lookForOffer() {
  if (!existsSync(`${directory}/offer`) || extending === undefined) return;
  const main = readFileSync(`${directory}/offer`, "utf8");
  rmSync(`${directory}/offer`);
  await ask({ op: "offer", main, controller: "" });
  if (main === "hang") setTimeout(() => void ask({ op: "withdraw" }), 300);
}
