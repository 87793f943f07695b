/**
 * What somebody runs who has taken the engine's user: `evil-engine.mjs STATE RUN DATA REPORT STOP`. It takes the place of Valkey's
 * socket, lays links from the engine's files to the agent's, looks at all that is below the machine's directories, and leaves
 * what it got in REPORT once STOP is there.
 */
import { accessSync, chmodSync, constants, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";

const [state, run, data, report, stop] = process.argv.slice(2);
const mine = process.getuid();
const tried = (attempt) => {
  try {
    return attempt() ?? "done";
  } catch (error) {
    return error.code ?? error.message;
  }
};
const can = (path, mode) => tried(() => accessSync(path, mode)) === "done";

function* below(directory) {
  for (const entry of (() => { try { return readdirSync(directory, { withFileTypes: true }); } catch { return []; } })()) {
    const path = join(directory, entry.name);
    yield [path, entry];
    if (entry.isDirectory()) yield* below(path);
  }
}

// The agent signs in at this socket with what this file says.
let heard = "";
const secret = join(data, "valkey", "platform.secret");
const socket = join(run, "engine", "valkey.sock");
renameSync(secret, `${secret}.was`);
symlinkSync(join(state, "identity.json"), secret);
rmSync(join(data, "valkey", "users.made"), { force: true });
symlinkSync(join(state, "enrollment.json"), join(data, "valkey", "users.made"));
if (existsSync(socket)) renameSync(socket, `${socket}.was`);
const server = createServer((client) => {
  client.on("error", () => client.destroy());
  client.on("data", (bytes) => {
    heard += bytes.toString("latin1");
    // Whatever it asks for went well, so that it goes on.
    client.write("+OK\r\n");
  });
}).listen(socket);
await new Promise((resolve) => server.once("listening", resolve));
chmodSync(socket, 0o777);

while (!existsSync(stop)) await new Promise((resolve) => setTimeout(resolve, 50));

const readable = {};
const writable = [];
const sockets = [];
for (const [path, entry] of [...below(state), ...below(run)]) {
  if (path.startsWith(join(run, "engine"))) continue;
  if (entry.isSocket()) sockets.push(path);
  else if (entry.isFile() && can(path, constants.R_OK)) readable[path] = readFileSync(path, "latin1");
  if (can(path, constants.W_OK)) writable.push(path);
}
for (const name of ["identity.json", "enrollment.json", "journal", "keeper.sock"])
  for (const path of [join(state, name), join(run, name)]) if (can(path, constants.R_OK | constants.W_OK)) writable.push(path);
const dialled = await Promise.all(
  [...sockets, join(run, "keeper.sock")].map(
    (path) =>
      new Promise((resolve) => {
        const client = connect(path, () => resolve([path, "connected"]));
        client.on("error", (error) => resolve([path, error.code]));
      }),
  ),
);
// Processes of others: neither their memory, nor their variables, nor their files, nor a signal.
const others = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).flatMap((pid) => {
  const told = tried(() => readFileSync(`/proc/${pid}/status`, "latin1"));
  const uid = Number(/^Uid:\t(\d+)/m.exec(told)?.[1] ?? mine);
  return uid === mine ? [] : [{
    pid: Number(pid),
    uid,
    environment: tried(() => readFileSync(`/proc/${pid}/environ`).length),
    memory: tried(() => readFileSync(`/proc/${pid}/mem`).length),
    files: tried(() => readdirSync(`/proc/${pid}/fd`).length),
    signal: tried(() => process.kill(Number(pid), 0)),
  }];
  // Asked last: one that ended meanwhile has nothing that could be seen.
}).filter(({ signal }) => signal !== "ESRCH");
writeFileSync(report, JSON.stringify({ heard, readable, writable, dialled, others }));
process.exit(0);
