import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createDeadline } from "./deadline.ts";
import type { Cage } from "./cage.ts";
import { innerCommand, outerEnvironment } from "./component-environment.ts";
import type { Containment, Role } from "./containment.ts";
import { sweepTrace } from "./group-cage.ts";
import type { ComponentSpec, ComponentStatus } from "./keeper-protocol.ts";
import { createLineSplitter } from "./line-splitter.ts";
import { createSegmentLog } from "./segment-log.ts";
import { readTrace, writeTrace } from "./trace-file.ts";

/** One named component and its runs; never two at a time. */
export interface Component {
  /** Resolves when nothing is left of what an earlier keeper ran under this name. */
  sweep(): Promise<void>;
  readonly status: ComponentStatus;
  readonly spec: ComponentSpec | undefined;
  /** Resolves when its first process is there; rejects when it runs already or cannot be made. */
  start(spec: ComponentSpec): Promise<void>;
  /** Resolves when nothing of it is left. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Throws for a number lower than one seen before. */
  extend(number: number, leftMs: number | null, untilMs?: number): void;
}

export interface ComponentDeps {
  readonly containment: Containment;
  readonly role: Role;
  /** User who may read their logs: the agent's, when it is another one than this process's. */
  readonly owner: number | undefined;
  /** Directory for the trace of a running component. */
  readonly runDir: string;
  readonly bootMs: () => number;
  readonly now: () => number;
  readonly onChange: (status: ComponentStatus) => void;
}

type Exit = NonNullable<ComponentStatus["exit"]>;

const emptyCheckMs = 5;
const longestLogWaitMs = 500;
const longestLineBytes = 64 << 10;

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
  let cage: Cage | undefined;
  let cause: ComponentStatus["cause"] = null;
  let starting = false;
  let ended = Promise.resolve();

  const deadline = createDeadline(bootMs, () => {
    if (cage === undefined || cage.isEmpty()) return;
    cause = "deadline";
    cage.killAll();
  });

  function become(change: Partial<ComponentStatus>): void {
    status = { ...status, ...change };
    onChange({ ...status, rightNumber: deadline.number });
  }

  /** What an earlier keeper left is killed before anything new starts. */
  async function sweep(): Promise<void> {
    const trace = readTrace(traceFile);
    while (trace !== undefined && !sweepTrace(trace)) await sleep(emptyCheckMs);
    rmSync(traceFile, { force: true });
  }

  async function launch(wanted: ComponentSpec): Promise<void> {
    await sweep();
    const [file = "", ...args] = containment.wrap(innerCommand(wanted.argv), role);
    const log = createSegmentLog({ ...wanted.log, owner });
    const child = spawn(file, args, {
      cwd: "/",
      env: outerEnvironment(wanted),
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    // A program that ends without reading it says why in its output.
    child.stdin.on("error", () => child.stdin.destroy());
    child.stdin.end(wanted.input ?? "");
    for (const stream of [child.stdout, child.stderr]) {
      const lines = createLineSplitter(longestLineBytes, (bytes) => log.append(bytes));
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
      // What nobody could find again may not run, nor a second one beside it.
      await empty(entered);
      throw error;
    }
    cage = entered;
    cause = null;
    if (wanted.untilMs === undefined) deadline.reset(wanted.deadlineMs);
    else deadline.resetTo(wanted.untilMs);
    spec = wanted;
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

  async function empty(left: Cage): Promise<void> {
    while (!left.isEmpty()) {
      left.killAll();
      await sleep(emptyCheckMs);
    }
    left.close();
  }

  async function finish(left: Cage, exit: Exit, logged: Promise<void>): Promise<void> {
    cause ??= "exited";
    await empty(left);
    // Its last words are worth a moment, but a disk that hangs holds nobody up.
    await Promise.race([logged, sleep(longestLogWaitMs, undefined, { ref: false })]);
    cage = undefined;
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
    async start(wanted) {
      if (starting || status.state !== "empty") throw new Error(`${name} is not empty`);
      starting = true;
      try {
        await launch(wanted);
      } finally {
        starting = false;
      }
    },
    async stop(signal, graceMs) {
      const current = cage;
      if (current === undefined) return;
      cause ??= "requested";
      if (status.state === "running") become({ state: "stopping" });
      current.signal(signal);
      const patience = setTimeout(() => current.killAll(), graceMs);
      await ended;
      clearTimeout(patience);
    },
    signal(signal) {
      if (cage === undefined) throw new Error(`${name} is not running`);
      cage.signal(signal);
    },
    extend(number, leftMs, untilMs) {
      if (untilMs === undefined) deadline.extend(number, leftMs);
      else deadline.extendTo(number, untilMs);
    },
  };
}
