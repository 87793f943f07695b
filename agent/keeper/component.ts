import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createDeadline } from "./deadline.ts";
import { readTrace, type Sandbox, writeTrace } from "./sandbox.ts";
import type { Containment, ComponentRole } from "./containment.ts";
import { killRemaining } from "./group-sandbox.ts";
import type { ComponentSpec, ComponentStatus } from "./keeper-protocol.ts";
import { createLineSplitter, createSegmentLog } from "./segment-log.ts";

/** A named component of the machine; it has at most one run at a time. */
export interface Component {
  /** Resolves once no process remains of a run under this name by an earlier keeper. */
  sweep(): Promise<void>;
  readonly status: ComponentStatus;
  readonly spec: ComponentSpec | undefined;
  /** Starts a run. Resolves once its first process exists; rejects if a run exists or cannot be started. */
  start(spec: ComponentSpec): Promise<void>;
  /** Stops the run: sends the signal and, after `graceMs`, SIGKILL. Resolves once no process of it remains. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Moves the deadline; null removes it. Throws for a number lower than one seen before. */
  extend(number: number, untilMs: number | null): void;
}

export interface ComponentDeps {
  readonly containment: Containment;
  readonly role: ComponentRole;
  /** User who may read the logs: the agent's, if it differs from this process's user. */
  readonly owner: number | undefined;
  /** Directory for the trace of a running component. */
  readonly runDir: string;
  readonly bootMs: () => number;
  readonly now: () => number;
  readonly onChange: (status: ComponentStatus) => void;
}

type Exit = NonNullable<ComponentStatus["exit"]>;

const emptyCheckMs = 5;
const maxLogWaitMs = 500;
const maxLineBytes = 64 << 10;

export function createComponent(name: string, deps: ComponentDeps): Component {
  const { containment, role, owner, runDir, bootMs, now, onChange } = deps;
  const traceFile = `${runDir}/${name}.trace`;
  let status: ComponentStatus = {
    name,
    state: "empty",
    pid: null,
    startedAt: 0,
    endedAt: null,
    exit: null,
    cause: null,
    starts: 0,
  };
  let spec: ComponentSpec | undefined;
  let sandbox: Sandbox | undefined;
  let cause: ComponentStatus["cause"] = null;
  let starting = false;
  let ended = Promise.resolve();

  const deadline = createDeadline(bootMs, () => {
    if (sandbox === undefined || sandbox.isEmpty()) return;
    cause = "deadline";
    sandbox.killAll();
  });

  function become(change: Partial<ComponentStatus>): void {
    status = { ...status, ...change };
    onChange({ ...status, rightNumber: deadline.number });
  }

  /** Kills the processes of a run by an earlier keeper, before a new run starts. */
  async function sweep(): Promise<void> {
    const trace = readTrace(traceFile);
    while (trace !== undefined && !killRemaining(trace)) await sleep(emptyCheckMs);
    rmSync(traceFile, { force: true });
  }

  async function launch(desired: ComponentSpec): Promise<void> {
    await sweep();
    const [file = "", ...args] = containment.wrap(innerCommand(desired.argv), desired.role ?? role);
    const log = createSegmentLog({ ...desired.log, owner });
    const child = spawn(file, args, {
      cwd: "/",
      env: outerEnvironment(desired),
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    // A program that ends without reading its input reports the reason in its output.
    child.stdin.on("error", () => child.stdin.destroy());
    child.stdin.end(desired.input ?? "");
    for (const stream of [child.stdout, child.stderr]) {
      const mark = stream === child.stderr && desired.log.marksErrors === true ? "!" : " ";
      const append = (bytes: Buffer) => log.append(desired.log.stamped === true ? stamped(bytes, now(), mark) : bytes);
      const lines = createLineSplitter(maxLineBytes, append);
      stream.on("data", (bytes: Buffer) => lines.push(bytes));
      stream.on("close", () => lines.end());
    }
    const logged = new Promise<void>((resolve) => child.once("close", () => resolve())).then(() => log.close());
    const exited = new Promise<Exit>((resolve, reject) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
      child.once("error", reject);
    });
    if (child.pid === undefined) return void (await exited);
    const entered = await containment.enclose(child.pid);
    try {
      writeTrace(traceFile, entered.trace);
    } catch (error) {
      // A run without a trace could not be found after a crash of the keeper, so a second run might start beside it.
      await empty(entered);
      throw error;
    }
    sandbox = entered;
    cause = null;
    deadline.reset(desired.untilMs ?? null);
    spec = desired;
    become({
      state: "running",
      pid: entered.pid ?? null,
      startedAt: now(),
      endedAt: null,
      exit: null,
      cause: null,
      starts: status.starts + 1,
    });
    ended = exited.then((exit) => finish(entered, exit, logged));
  }

  async function empty(remaining: Sandbox): Promise<void> {
    while (!remaining.isEmpty()) {
      remaining.killAll();
      await sleep(emptyCheckMs);
    }
    remaining.close();
  }

  async function finish(remaining: Sandbox, exit: Exit, logged: Promise<void>): Promise<void> {
    cause ??= "exited";
    await empty(remaining);
    // The wait for the last output is limited: a disk that hangs must not block the end of the run.
    await Promise.race([logged, sleep(maxLogWaitMs, undefined, { ref: false })]);
    sandbox = undefined;
    deadline.clear();
    rmSync(traceFile, { force: true });
    become({ state: "empty", pid: null, endedAt: now(), exit, cause });
  }

  return {
    sweep,
    get status() {
      return { ...status, rightNumber: deadline.number };
    },
    get spec() {
      return spec;
    },
    async start(desired) {
      if (starting || status.state !== "empty") throw new Error(`${name} is not empty`);
      starting = true;
      try {
        await launch(desired);
      } finally {
        starting = false;
      }
    },
    async stop(signal, graceMs) {
      const current = sandbox;
      if (current === undefined) return;
      cause ??= "requested";
      if (status.state === "running") become({ state: "stopping" });
      current.signal(signal);
      const killTimer = setTimeout(() => current.killAll(), graceMs);
      await ended;
      clearTimeout(killTimer);
    },
    signal(signal) {
      if (sandbox === undefined) throw new Error(`${name} is not running`);
      sandbox.signal(signal);
    },
    extend: deadline.extend,
  };
}

/** Begins each of these complete lines with the time and the mark. */
function stamped(lines: Buffer, atMs: number, mark: string): Buffer {
  const time = `${new Date(atMs).toISOString()}${mark}`;
  // Any byte is one character of latin1, so the lines keep their encoding.
  const text = lines.toString("latin1");
  return Buffer.from(time + text.slice(0, -1).replaceAll("\n", `\n${time}`) + "\n", "latin1");
}

/**
 * Variable that carries the component's environment past the programs that set up its sandbox, which must not be
 * influenced by that environment.
 */
const carrier = "HOLDFAST_COMPONENT";
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Command line of the component, run as its user: a shell sets environment and working directory, then execs the
 * program. Until the user is switched, every program runs with `outerEnvironment`.
 */
function innerCommand(argv: readonly string[]): string[] {
  return ["/bin/sh", "-c", `eval "$${carrier}" && exec "$@"`, "sh", ...argv];
}

/** Environment of the programs that run before the user is switched; the agent controls nothing in it. */
function outerEnvironment({ env, cwd }: Pick<ComponentSpec, "env" | "cwd">): Record<string, string> {
  const variables = Object.entries({ PATH: defaultPath, ...env });
  const exports = variables.map(([name, value]) => `export ${name}=${quoted(value)}`);
  const script = [`unset ${carrier}`, `cd ${quoted(cwd)} || exit 126`, "unset PWD OLDPWD", ...exports].join("\n");
  return { PATH: defaultPath, [carrier]: script };
}

/** Quotes a string for the shell, which then expands no part of it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
