import { randomUUID } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment, containersName, type MachineUserIds } from "./containment.ts";
import { createKeeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";
import { ensureDirectory, type FileOwner, openDirectory, setOwnership } from "./directory-handle.ts";
import { createKeeperLog } from "./keeper-log.ts";

/**
 * The keeper is the first program of a machine. It imports only Node and files of this repository that import no
 * package, serves agents over its socket, and owns the components while agents are replaced.
 *
 * Node reaps only its own children. On a machine with a separate root file system the image's init is the parent of the
 * keeper and inherits orphans, of which there are few: every component has its own PID namespace, and the end of the
 * namespace ends all its processes.
 */
const environment = process.env;
const stateDir = environment["HOLDFAST_STATE_DIR"] ?? "/var/lib/holdfast";
const runDir = environment["HOLDFAST_RUN_DIR"] ?? "/run/holdfast";
const socketPath = environment["HOLDFAST_KEEPER_SOCKET"] ?? join(runDir, "keeper.sock");
const engineUid = environment["HOLDFAST_MACHINE_UID"] ?? "";
const agentUid = environment["HOLDFAST_AGENT_UID"] ?? engineUid;
const containerUid = environment["HOLDFAST_CONTAINER_UID"] ?? "";
const dataDir = environment["HOLDFAST_DATA_DIR"] ?? "/data";
const logDirectory = join(stateDir, "log");
const users: MachineUserIds | undefined =
  engineUid === "" || process.getuid?.() !== 0
    ? undefined
    : {
        agent: Number(agentUid),
        engine: Number(engineUid),
        ...(containerUid !== "" && { container: Number(containerUid) }),
      };

const agent: ComponentSpec = {
  name: "agent",
  argv: [
    process.execPath,
    // A small young generation keeps the memory of an idle agent low.
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
    // Shared by all agents of this start of the machine.
    HOLDFAST_MACHINE_START: environment["HOLDFAST_MACHINE_START"] ?? randomUUID(),
  },
  cwd: stateDir,
  log: { path: join(logDirectory, "agent.log"), maxBytes: 4 << 20, keep: 4 },
  stop: { signal: "SIGTERM", graceMs: 5_000 },
  deadlineMs: null,
};

/** Agents store releases that controllers sent here, each in a directory named by its digest. */
const receivedCode = join(stateDir, "code");

/** Component of an agent whose code was received: its main file, with a separate compile cache. */
function specOfMain(main: string): ComponentSpec {
  if (dirname(dirname(main)) !== receivedCode) throw new Error(`${main} is not below ${receivedCode}`);
  return {
    ...agent,
    argv: [...agent.argv.slice(0, -1), main],
    env: { ...agent.env, NODE_COMPILE_CACHE: join(dirname(main), "compile-cache") },
  };
}

// Files get exactly the modes that the code names: the caller's umask has no effect.
process.umask(0o022);

const ownerOf = (user: "agent" | "engine"): FileOwner | undefined =>
  users && { user: users[user], group: users.engine };
const containerOwner: FileOwner | undefined =
  users?.container === undefined ? undefined : { user: users.container, group: users.container };

interface Inner {
  readonly name: string;
  readonly owner: FileOwner | undefined;
  readonly mode: number;
}

/**
 * Directories with owner and mode. The engine's user may traverse the agent's directories to reach files shared with
 * it, and the agent may write in the engine's. `inner` is a subdirectory; that of containers, on the data disk, can be
 * entered by their users alone.
 */
const directories: readonly (readonly [path: string, owner: FileOwner | undefined, mode: number, inner?: Inner])[] = [
  [stateDir, ownerOf("agent"), 0o710, { name: "instance", owner: ownerOf("agent"), mode: 0o710 }],
  // The keeper remains the owner, since it serves its socket there.
  [runDir, undefined, 0o755],
  [join(runDir, "engine"), ownerOf("engine"), 0o770],
  containerOwner === undefined
    ? [dataDir, ownerOf("engine"), 0o770]
    : [dataDir, ownerOf("engine"), 0o771, { name: containersName, owner: containerOwner, mode: 0o700 }],
];
for (const [path, owner, mode, inner] of directories) {
  mkdirSync(path, { recursive: true });
  // The provider may make the path a symbolic link; below it, names belong to the agent.
  const directory = openDirectory(realpathSync(path));
  setOwnership(directory, owner, mode);
  if (inner !== undefined) {
    const inside = ensureDirectory(directory, inner.name, inner.owner);
    setOwnership(inside, inner.owner, inner.mode);
    inside.close();
  }
  directory.close();
}
const containment = chooseContainment(users);
const note = createKeeperLog(
  (line) => {
    process.stderr.write(line);
  },
  bootMs,
  Date.now,
);
watchProcessFaults({
  role: "supervisor",
  logFault: (message, { error, repeated }) =>
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
  specOfMain,
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
