import { randomUUID } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment, type Users } from "./containment.ts";
import { createKeeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";
import { ensureDirectory, type Owner, openDirectory, settle } from "./kept-directory.ts";
import { createNotes } from "./notes.ts";

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
const logDirectory = join(stateDir, "log");
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
  log: { path: join(logDirectory, "agent.log"), maxBytes: 4 << 20, keep: 4 },
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

const ownerOf = (user: keyof Users): Owner | undefined => users && { user: users[user], group: users.engine };

/** The engine passes through the agent's directories to what is there for it; its own the agent can work in too. */
const directories: readonly (readonly [path: string, owner: Owner | undefined, mode: number, own?: string])[] = [
  [stateDir, ownerOf("agent"), 0o710, "instance"],
  // The socket's directory stays the keeper's.
  [runDir, undefined, 0o755],
  [join(runDir, "engine"), ownerOf("engine"), 0o770],
  [environment["HOLDFAST_DATA_DIR"] ?? "/data", ownerOf("engine"), 0o770],
];
for (const [path, owner, mode, own] of directories) {
  mkdirSync(path, { recursive: true });
  // Where these are is the provider's choice; what is inside of one that is the agent's, the agent's.
  const directory = openDirectory(realpathSync(path));
  settle(directory, owner, mode);
  if (own !== undefined) {
    const inside = ensureDirectory(directory, own, owner);
    settle(inside, owner, mode);
    inside.close();
  }
  directory.close();
}
const containment = chooseContainment(users);
const note = createNotes(
  (line) => {
    process.stderr.write(line);
  },
  bootMs,
  Date.now,
);
watchProcessFaults({
  role: "supervisor",
  note: (message, { error, repeated }) =>
    note(message, { error: error instanceof Error ? error.stack : String(error), repeated }),
  monotonicMs: bootMs,
});
const keeper = createKeeper({
  containment,
  runDir,
  socketPath,
  logDirectory,
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
