import { randomUUID } from "node:crypto";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment } from "./containment.ts";
import { createKeeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";

/**
 * The keeper: first process of a machine. It imports nothing but Node itself, does what agents ask over its socket, and
 * holds what runs while agents come and go.
 *
 * As process 1 it would inherit orphans, and Node can reap only its own children. None reach it: every component is in a
 * PID namespace of its own, whose first process inherits them, and the namespace's end takes them all.
 */
const environment = process.env;
const stateDir = environment["HOLDFAST_STATE_DIR"] ?? "/var/lib/holdfast";
const runDir = environment["HOLDFAST_RUN_DIR"] ?? "/run/holdfast";
const socketPath = environment["HOLDFAST_KEEPER_SOCKET"] ?? join(runDir, "keeper.sock");
const uidText = environment["HOLDFAST_MACHINE_UID"] ?? "";
const owner = uidText === "" || process.getuid?.() !== 0 ? undefined : Number(uidText);

const agent: ComponentSpec = {
  name: "agent",
  argv: [
    process.execPath,
    // A small young generation: an idle machine is to cost little.
    "--max-semi-space-size=1",
    environment["HOLDFAST_AGENT_MAIN"] ?? join(import.meta.dirname, "..", "src", "main.ts"),
  ],
  env: {
    HOME: stateDir,
    NODE_COMPILE_CACHE: environment["NODE_COMPILE_CACHE"] ?? join(stateDir, "compile-cache"),
    ...Object.fromEntries(
      Object.entries(environment).filter(([name, value]) => name.startsWith("HOLDFAST_") && value !== undefined),
    ),
    HOLDFAST_STATE_DIR: stateDir,
    HOLDFAST_RUN_DIR: runDir,
    HOLDFAST_KEEPER_SOCKET: socketPath,
    // The same for every agent of this start of the machine.
    HOLDFAST_MACHINE_START: environment["HOLDFAST_MACHINE_START"] ?? randomUUID(),
  },
  cwd: stateDir,
  log: { path: join(stateDir, "log", "agent.log"), maxBytes: 4 << 20, keep: 4 },
  stop: { signal: "SIGTERM", graceMs: 5_000 },
  deadlineMs: null,
};

for (const directory of [stateDir, runDir, join(runDir, "engine"), environment["HOLDFAST_DATA_DIR"] ?? "/data"]) {
  mkdirSync(directory, { recursive: true });
  // The sockets' directory stays the keeper's; what agent and engine write to is theirs.
  if (owner !== undefined && directory !== runDir) chownSync(directory, owner, owner);
}
const containment = chooseContainment(owner);
const note = (message: string, fields: object) =>
  void process.stderr.write(`${JSON.stringify({ time: Date.now(), name: "keeper", msg: message, ...fields })}\n`);
const keeper = createKeeper({ containment, runDir, socketPath, owner, agent, bootMs, now: Date.now, note });

let stopped: Promise<void> | undefined;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    stopped ??= keeper.stop().then(() => process.exit(0));
  });
}
await keeper.start();
note("keeper ready", { containment: containment.kind });
