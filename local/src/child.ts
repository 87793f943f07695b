import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Clock } from "@holdfast/common/clock.ts";
import { dyingWithParent, type Launch, programPid } from "@holdfast/image/in-image.ts";
import type { BoundedLog } from "./bounded-log.ts";
import type { PortName } from "./ports.ts";
import { signalIfRunning } from "./recorded-process.ts";

export interface ChildSpec {
  readonly name: string;
  readonly launch: Launch;
  /** Complete environment; secrets are passed by file. */
  readonly env: Readonly<Record<string, string>>;
  /** Matches output once the process serves; null: ready when it runs. */
  readonly ready: RegExp | null;
  /** Ports of the installation that it listens on. */
  readonly listens?: readonly PortName[];
  readonly stopSignal: NodeJS.Signals;
  /** Time limit of an orderly stop, in milliseconds, before it is killed. */
  readonly graceMs: number;
  /**
   * Probe that detects a hanging process, which is killed and restarted; without it only an ended process is restarted.
   */
  readonly liveness?: Liveness;
}

export interface ChildDeps {
  readonly log: BoundedLog;
  /** Prints a line for the user. */
  print(line: string): void;
  /** Called each time the process ended unexpectedly, before its restart. */
  ended?(): void;
  /** Clock for silence and run time; the wall clock may be stepped. */
  monotonicMs(): number;
}

/** A process that is restarted whenever it ends, until it is stopped. */
export interface Child {
  readonly name: string;
  /** Resolves when it is ready for the first time; rejects when it is stopped before. */
  readonly ready: Promise<void>;
  /** Stops in order, by its stop signal or another one, then by force. Resolves when it has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Run time after which a process counts as healthy, so that its next restart has the first delay. */
const minHealthyRunMs = 5_000;
const [firstDelayMs, lastDelayMs] = [100, 10_000];

export function startChild(spec: ChildSpec, deps: ChildDeps): Child {
  let running: ChildProcess | undefined;
  let retry: NodeJS.Timeout | undefined;
  let delayMs = firstDelayMs;
  /** Limit on silence. It doubles after each hang, because the process may need longer to start. */
  let silenceLimitMs = spec.liveness?.hangsAfterMs ?? 0;
  let watch: ReturnType<typeof watchLiveness> | undefined;
  let stopping = false;
  let output = "";
  const becameReady = Promise.withResolvers<void>();
  // Callers need not await it, so a rejection without a handler must not end the supervisor.
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
      // Ctrl-C in a terminal signals the whole group, but the supervisor decides the order of stopping.
      detached: true,
    });
    running = child;
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("spawn", () => {
      if (spec.ready === null) becameReady.resolve();
    });
    child.once("error", (error) => {
      // The process was not spawned, so no exit event follows.
      if (child.pid === undefined) ended(startedAt, error.message);
    });
    child.once("exit", (code, signal) => ended(startedAt, signal ?? `code ${code}`));
    if (spec.liveness !== undefined) watch = watched(child, spec.liveness);
  }

  function watched(child: ChildProcess, liveness: Liveness) {
    const responded = () => {
      silenceLimitMs = liveness.hangsAfterMs;
    };
    const hangs = () => {
      deps.log.write(`holdfast: ${spec.name} has not responded for ${silenceLimitMs / 1_000} s and is killed\n`);
      silenceLimitMs *= 2;
      child.kill("SIGKILL");
    };
    return watchLiveness(liveness, silenceLimitMs, { responded, hangs }, deps.monotonicMs);
  }

  function ended(startedAt: number, how: string): void {
    running = undefined;
    watch?.close();
    if (stopping) return;
    if (deps.monotonicMs() - startedAt > minHealthyRunMs) delayMs = firstDelayMs;
    deps.log.write(`holdfast: ${spec.name} ended with ${how}; next start in ${delayMs} ms\n`);
    deps.print(`${spec.name} ended with ${how} and is restarted; its log is ${deps.log.path}`);
    deps.ended?.();
    retry = setTimeout(start, delayMs);
    delayMs = Math.min(delayMs * 2, lastDelayMs);
  }

  start();
  return {
    name: spec.name,
    ready: becameReady.promise,
    async stop(signal = spec.stopSignal) {
      stopping = true;
      clearTimeout(retry);
      watch?.close();
      if (running !== undefined) await end(running, signal, spec.graceMs);
      becameReady.reject(new Error(`${spec.name} was stopped`));
      deps.log.close();
    },
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const program = programPid(child.pid);
  if (program !== undefined) signalIfRunning(program, signal);
  const force = setTimeout(() => child.kill("SIGKILL"), graceMs);
  await closed;
  clearTimeout(force);
}

/** A Node program of the platform; `settings` override the operator's environment, `flags` are Node's. */
export function nodejsProcess(
  name: string,
  main: string,
  environment: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
  { flags = [], graceMs = 10_000 }: { readonly flags?: readonly string[]; readonly graceMs?: number } = {},
): ChildSpec {
  // grpc-js uses etcd's IP address as TLS server name, and Node would warn about it on each start.
  const argv = [process.execPath, "--disable-warning=DEP0123", ...flags, main];
  const [command = "", ...args] = argv;
  return {
    name,
    // Only Linux can kill a process when its parent ends.
    launch: existsSync("/proc/self") ? dyingWithParent(argv) : { command, args },
    env: { ...environment, ...settings },
    ready: null,
    stopSignal: "SIGTERM",
    graceMs,
  };
}

interface Liveness {
  /** Resolves when the process responded, with any response. */
  probe(signal: AbortSignal): Promise<void>;
  /** Interval between probes and time limit of each, in milliseconds. */
  readonly intervalMs: number;
  /** Silence after which the process counts as hanging, in milliseconds. */
  readonly hangsAfterMs: number;
}

/** Probes a process until closed; calls `hangs` once when it has not responded for `silenceLimitMs`. */
function watchLiveness(
  { probe, intervalMs }: Pick<Liveness, "probe" | "intervalMs">,
  silenceLimitMs: number,
  on: { readonly responded: () => void; readonly hangs: () => void },
  monotonicMs: Clock["monotonicMs"],
): { close(): void } {
  let respondedAt = monotonicMs();
  let timer: NodeJS.Timeout | undefined;
  const closed = new AbortController();

  function runProbe(): void {
    probe(AbortSignal.any([closed.signal, AbortSignal.timeout(intervalMs)]))
      .then(() => {
        respondedAt = monotonicMs();
        on.responded();
      })
      // The process logs the reason itself.
      .catch(() => undefined)
      .finally(check);
  }
  function check(): void {
    if (closed.signal.aborted) return;
    if (monotonicMs() - respondedAt >= silenceLimitMs) on.hangs();
    else wait();
  }
  function wait(): void {
    timer = setTimeout(runProbe, intervalMs);
  }

  wait();
  return {
    close() {
      clearTimeout(timer);
      closed.abort();
    },
  };
}
