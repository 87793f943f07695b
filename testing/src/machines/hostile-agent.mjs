/**
 * Program of an attacker who controls the agent's user: `hostile-agent.mjs`, started by a keeper as its agent. It tries
 * to become root, or to have root change files that are not the agent's, and writes the keeper's responses to
 * `answers.json`. HOLDFAST_HOSTILE_DIR, which is writable by all, has the file that it tries to change, `target`.
 */
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { HOLDFAST_STATE_DIR: state, HOLDFAST_KEEPER_SOCKET: path, HOLDFAST_HOSTILE_DIR: shared } = process.env;
const target = join(shared, "target");
const logs = join(state, "log");
const answersFile = join(shared, "answers.json");
if (existsSync(answersFile)) await new Promise(() => setInterval(() => {}, 1_000));

const socket = connect(path);
const waiting = new Map();
let id = 0;
createInterface({ input: socket }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});

function ask(request) {
  id += 1;
  socket.write(`${JSON.stringify({ ...request, id })}\n`);
  return new Promise((resolve) => waiting.set(id, resolve));
}

const plain = {
  name: "engine",
  argv: ["true"],
  env: {},
  cwd: "/",
  log: { path: join(logs, "engine.log"), maxBytes: 1 << 20, keep: 3 },
  stop: { signal: "SIGKILL", graceMs: 0 },
  deadlineMs: null,
};

const answers = {};
async function start(attempt, change) {
  const component = { ...plain, ...change };
  const answer = await ask({ op: "start", component });
  answers[attempt] = answer.ok ? "started" : answer.error;
  if (answer.ok) await ask({ op: "stop", name: component.name, signal: "SIGKILL", graceMs: 0 });
}

const logTo = (file) => ({ log: { ...plain.log, path: file } });

// Programs with the names of those that the keeper runs; each records its user and continues as the real one.
const programs = join(shared, "bin");
mkdirSync(programs);
for (const name of ["setpriv", "unshare", "choom", "sh", "env", "true", "id"]) {
  const script = `#!/bin/sh\necho ${name} >>${shared}/ran-as-$(/usr/bin/id -u)\nexec /usr/bin/${name} "$@"\n`;
  writeFileSync(join(programs, name), script, { mode: 0o755 });
}
await start("PATH", { env: { PATH: programs } });
// A `sh` runs the file in ENV, as the dynamic linker runs a preloaded library.
writeFileSync(join(shared, "preloaded"), "");
const preload = { LD_PRELOAD: join(shared, "preloaded.so"), ENV: join(shared, "env") };
const preloading = ["sh", "-c", `cat /proc/1/environ >${shared}/inner; while :; do sleep 1; done`];
const waits = await ask({ op: "start", component: { ...plain, argv: preloading, env: preload } });
answers.LD_PRELOAD = waits.ok ? "started" : waits.error;
// Time: the rate of the checks, in a program of one file.
while (!existsSync(join(shared, "inner"))) await new Promise((resolve) => setTimeout(resolve, 20));
writeFileSync(join(shared, "pause"), "");
// Time: the rate of the checks, in a program of one file.
while (existsSync(join(shared, "pause"))) await new Promise((resolve) => setTimeout(resolve, 20));
await ask({ op: "stop", name: "engine", signal: "SIGKILL", graceMs: 0 });

await start("log elsewhere", logTo(join(target, "made.log")));
await start("log of the target's directory", logTo(target));
await start("log by dots", logTo(`${logs}/../../target/log`));
symlinkSync(join(target, "file"), join(logs, "linked.log.1"));
await start("log by a link", logTo(join(logs, "linked.log")));
symlinkSync(join(target, "not-there"), join(logs, "dangling.log.1"));
await start("log by a dangling link", logTo(join(logs, "dangling.log")));
try {
  linkSync(join(target, "open"), join(logs, "hard.log.1"));
  await start("log by a hard link", logTo(join(logs, "hard.log")));
} catch (error) {
  answers["log by a hard link"] = error.code;
}
renameSync(logs, `${logs}.away`);
symlinkSync(target, logs);
await start("logs by a link", logTo(join(logs, "file")));
rmSync(logs);
renameSync(`${logs}.away`, logs);

for (const name of ["../../target/file", "..", "a/b", "", "engine/../../x", "__proto__"]) await start(`name ${name}`, { name });
await start("no command", { argv: [] });
await start("signal", { stop: { signal: "SIGNOTHING", graceMs: 0 } });
await start("variable", { env: { "A;touch /tmp/x": "" } });
for (let n = 0; n < 40; n += 1) await ask({ op: "stop", name: `name-${n}`, signal: "SIGKILL", graceMs: 0 });
const { ok, error, components } = await ask({ op: "stop", name: "one-more", signal: "SIGKILL", graceMs: 0 });
answers["too many names"] = ok ? String(components.length) : error;
// For the keeper's next start.
rmSync(join(state, "instance"), { recursive: true });
symlinkSync(target, join(state, "instance"));
answers.status = readFileSync("/proc/self/status", "utf8");
// Renamed into place, so that a reader finds the complete file.
writeFileSync(`${answersFile}.new`, JSON.stringify(answers));
renameSync(`${answersFile}.new`, answersFile);
setInterval(() => {}, 1_000);
