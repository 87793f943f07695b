import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import type { Launch } from "@holdfast/image/in-image.ts";
import { programPid } from "@holdfast/image/program-pid.ts";
import type { BoundedLog } from "./bounded-log.ts";
import type { PortName } from "./ports.ts";
import { signalIfThere } from "./signal-if-there.ts";
import { type Liveness, watchSilence } from "./silence-watch.ts";

export interface ChildSpec {
  readonly name: string;
  readonly launch: Launch;
  /** All of its environment; secrets come by file. */
  readonly env: Readonly<Record<string, string>>;
  /** Matches what it prints once it serves; null counts it as ready when it runs. */
  readonly ready: RegExp | null;
  /** Ports of the installation that it listens on. */
  readonly listens?: readonly PortName[];
  readonly stopSignal: NodeJS.Signals;
  /** How long an orderly stop may take before it is killed. */
  readonly graceMs: number;
  /** A process that hangs is killed and started again; without it only one that ends is. */
  readonly liveness?: Liveness;
}

export interface ChildDeps {
  readonly log: BoundedLog;
  /** Called with one line for the user. */
  say(line: string): void;
  /** Called each time that it ended unasked, before its next start. */
  ended?(): void;
  /** Measures silence and how long a process ran: the wall clock may be stepped meanwhile. */
  monotonicMs(): number;
}

/** A process that is started again whenever it ends, until it is stopped. */
export interface Child {
  readonly name: string;
  /** Resolves the first time that it is ready; rejects when it is stopped before. */
  readonly ready: Promise<void>;
  /** In order, then by force. Resolves when it is gone. */
  stop(): Promise<void>;
}

/** A child that ran this long was healthy, and its next end is a first one again. */
const healthyMs = 5_000;
const [firstDelayMs, lastDelayMs] = [100, 10_000];

export function startChild(spec: ChildSpec, deps: ChildDeps): Child {
  let running: ChildProcess | undefined;
  let retry: NodeJS.Timeout | undefined;
  let delayMs = firstDelayMs;
  /** Doubled each time that the next one hangs, too: one that needs long to begin must come to answer some time. */
  let patienceMs = spec.liveness?.hangsAfterMs ?? 0;
  let watch: ReturnType<typeof watchSilence> | undefined;
  let stopping = false;
  let output = "";
  const becameReady = Promise.withResolvers<void>();
  // Whoever does not wait for it must not make a rejection fatal.
  becameReady.promise.catch(() => undefined);

  function read(text: string): void {
    deps.log.write(text);
    if (spec.ready === null || output === "ready") return;
    output = (output + text).slice(-4_000);
    if (!spec.ready.test(output)) return;
    output = "ready";
    becameReady.resolve();
  }

  function start(): void {
    const startedAt = deps.monotonicMs();
    output = "";
    const child = spawn(spec.launch.command, spec.launch.args, {
      cwd: "/",
      env: spec.env,
      stdio: ["ignore", "pipe", "pipe"],
      // Ctrl-C in a terminal reaches the whole group; the order of stopping is the supervisor's.
      detached: true,
    });
    running = child;
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("spawn", () => {
      if (spec.ready === null) becameReady.resolve();
    });
    child.once("error", (error) => {
      // Not spawned at all, so there is no end to wait for.
      if (child.pid === undefined) ended(startedAt, error.message);
    });
    child.once("exit", (code, signal) => ended(startedAt, signal ?? `code ${code}`));
    if (spec.liveness !== undefined) watch = watched(child, spec.liveness);
  }

  function watched(child: ChildProcess, liveness: Liveness) {
    const answered = () => {
      patienceMs = liveness.hangsAfterMs;
    };
    const hangs = () => {
      deps.log.write(`holdfast: ${spec.name} has not answered for ${patienceMs / 1_000} s and is killed\n`);
      patienceMs *= 2;
      child.kill("SIGKILL");
    };
    return watchSilence(liveness, patienceMs, { answered, hangs }, deps.monotonicMs);
  }

  function ended(startedAt: number, how: string): void {
    running = undefined;
    watch?.close();
    if (stopping) return;
    if (deps.monotonicMs() - startedAt > healthyMs) delayMs = firstDelayMs;
    deps.log.write(`holdfast: ${spec.name} ended with ${how}; next start in ${delayMs} ms\n`);
    deps.say(`${spec.name} ended with ${how} and is started again; its log is ${deps.log.path}`);
    deps.ended?.();
    retry = setTimeout(start, delayMs);
    delayMs = Math.min(delayMs * 2, lastDelayMs);
  }

  start();
  return {
    name: spec.name,
    ready: becameReady.promise,
    async stop() {
      stopping = true;
      clearTimeout(retry);
      watch?.close();
      if (running !== undefined) await end(running, spec);
      becameReady.reject(new Error(`${spec.name} was stopped`));
      deps.log.close();
    },
  };
}

async function end(child: ChildProcess, spec: ChildSpec): Promise<void> {
  const gone = new Promise((resolve) => child.once("close", resolve));
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const program = programPid(child.pid);
  if (program !== undefined) signalIfThere(program, spec.stopSignal);
  const force = setTimeout(() => child.kill("SIGKILL"), spec.graceMs);
  await gone;
  clearTimeout(force);
}
