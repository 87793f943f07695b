import { randomUUID } from "node:crypto";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment, type Users } from "./containment.ts";
import { createKeeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";

/**
 * The keeper: first program of a machine. It imports nothing but Node itself, does what agents ask over its socket, and
 * holds what runs while agents come and go.
 *
 * Node can reap only its own children, so where a machine has a root of its own, the image's init stands in front and inherits
 * orphans. Few reach that: every component is in a PID namespace of its own, and the namespace's end takes them all.
 */
const environment = process.env;
const stateDir = environment["HOLDFAST_STATE_DIR"] ?? "/var/lib/holdfast";
const runDir = environment["HOLDFAST_RUN_DIR"] ?? "/run/holdfast";
const socketPath = environment["HOLDFAST_KEEPER_SOCKET"] ?? join(runDir, "keeper.sock");
const engineUid = environment["HOLDFAST_MACHINE_UID"] ?? "";
const agentUid = environment["HOLDFAST_AGENT_UID"] ?? engineUid;
const users: Users | undefined =
  engineUid === "" || process.getuid?.() !== 0 ? undefined : { agent: Number(agentUid), engine: Number(engineUid) };

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

/** Where agents keep the code that controllers sent them: each state of it in a directory of its own. */
const receivedCode = join(stateDir, "code");

/** The same agent from another file; what Node compiles of it goes with it. */
function successorOf(main: string): ComponentSpec {
  if (dirname(dirname(main)) !== receivedCode) throw new Error(`${main} is not below ${receivedCode}`);
  return {
    ...agent,
    argv: [...agent.argv.slice(0, -1), main],
    env: { ...agent.env, NODE_COMPILE_CACHE: join(dirname(main), "compile-cache") },
  };
}

// Modes mean what they say, whoever started this.
process.umask(0o022);

/** The engine passes through the agent's directories to what is there for it; its own the agent can work in too. */
const directories: readonly (readonly [path: string, owner: keyof Users | undefined, mode: number])[] = [
  [stateDir, "agent", 0o710],
  [join(stateDir, "instance"), "agent", 0o710],
  // The socket's directory stays the keeper's.
  [runDir, undefined, 0o755],
  [join(runDir, "engine"), "engine", 0o770],
  [environment["HOLDFAST_DATA_DIR"] ?? "/data", "engine", 0o770],
];
for (const [path, owner, mode] of directories) {
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
  if (users !== undefined && owner !== undefined) chownSync(path, users[owner], users.engine);
}
const containment = chooseContainment(users);
const note = (message: string, fields: object) =>
  void process.stderr.write(`${JSON.stringify({ time: Date.now(), name: "keeper", msg: message, ...fields })}\n`);
const keeper = createKeeper({
  containment,
  runDir,
  socketPath,
  owner: users?.agent,
  agent,
  successorOf,
  bootMs,
  now: Date.now,
  note,
});

let stopped: Promise<void> | undefined;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    stopped ??= keeper.stop().then(() => process.exit(0));
  });
}
await keeper.start();
note("keeper ready", { containment: containment.kind });
