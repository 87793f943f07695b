import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../os/engine-file.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { Job, ObjectUseJson, Report, ToAgent, ToComponent, UrlGrant } from "./job.ts";

/**
 * A component of the keeper that runs one job at a time, as the agent sees it. An earlier agent may have started it.
 */
export interface JobComponent {
  readonly isEmpty: boolean;
  /** Throws while another job runs. */
  start(job: JobOf<Job>): Promise<void>;
  /** Stops the component. Resolves once none of its processes remains. */
  stop(): Promise<void>;
  send(message: ToComponent): void;
  /** Last report of the newest job; undefined if it left none, such as after SIGKILL. */
  outcome(): Promise<Report | undefined>;
  /** Resolves once no job runs. */
  ended(signal: AbortSignal): Promise<void>;
  /** Resolves once a job runs, or on the signal. */
  started(signal: AbortSignal): Promise<void>;
  /** Keeps a connection to each running job until the signal. */
  follow(signal: AbortSignal): Promise<void>;
}

type JobOf<J extends Job> = J extends Job ? Omit<J, "socket" | "outcome"> : never;

export interface JobComponentDeps {
  /** Name of the component: `backup`, `restore` or `archive`. */
  readonly name: string;
  /** `bulk` transfers bytes at full speed and ends; `steady` runs all the time and mostly waits. */
  readonly load: keyof typeof heapOptions;
  readonly keeper: KeeperClient;
  /** The component's program. */
  readonly program: string;
  /** Directory shared by agent and engine; emptied at each start of the machine. */
  readonly runDir: string;
  /** Log of the component: base path of the segments, their size in bytes and their number. */
  readonly log: { readonly path: string; readonly maxBytes: number; readonly keep: number };
  readonly onReport: (report: Report) => void;
  readonly mint: (uses: readonly ObjectUseJson[], signal: AbortSignal) => Promise<UrlGrant>;
}

/** Names of the components that are jobs and no part of the engine. */
export const jobComponents: ReadonlySet<string> = new Set(["backup", "restore", "archive"]);

/**
 * Options of Node. Transferred buffers are short-lived, so a small young generation frees them early. A large limit of
 * the old generation reduces its collections, which saves half of the CPU time.
 */
export const heapOptions = {
  bulk: ["--max-semi-space-size=1", "--initial-old-space-size=64"],
  steady: ["--max-semi-space-size=1"],
} as const;

/** Limits malloc arenas, since each one retains freed memory. */
export const heapEnvironment = { MALLOC_ARENA_MAX: "2" } as const;

const redialMs = 100;
/** Time limit for a component to end its child processes cleanly. */
const graceMs = 5_000;

export function createJobComponent(deps: JobComponentDeps): JobComponent {
  const { name, load, keeper, program, runDir, log, onReport, mint } = deps;
  const socketPath = join(runDir, `${name}.sock`);
  const outcomePath = join(runDir, `${name}.outcome`);
  const stop = { signal: "SIGTERM", graceMs } as const;
  let link: Socket | undefined;

  const isEmpty = () => (keeper.component(name)?.state ?? "empty") === "empty";

  function send(socket: Socket, message: ToComponent): void {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
  }

  async function receive(socket: Socket, line: string, signal: AbortSignal): Promise<void> {
    const message = JSON.parse(line) as ToAgent;
    if ("report" in message) {
      onReport(message.report);
      return;
    }
    const { id, uses } = message.need;
    try {
      send(socket, { urls: { id, grant: await mint(uses, signal) } });
    } catch (error) {
      send(socket, { refused: { id, reason: error instanceof Error ? error.message : String(error) } });
    }
  }

  /** Resolves once the connection has ended. */
  function connectOnce(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(socketPath);
      const abort = () => socket.destroy();
      signal.addEventListener("abort", abort, { once: true });
      socket.on("connect", () => void (link = socket));
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        signal.removeEventListener("abort", abort);
        if (link === socket) link = undefined;
        resolve();
      });
      // readline emits the socket's error again.
      createInterface({ input: socket })
        .on("error", () => socket.destroy())
        .on("line", (line) => {
          // After an invalid line the component dials again.
          receive(socket, line, signal).catch(() => socket.destroy());
        });
    });
  }

  return {
    get isEmpty() {
      return isEmpty();
    },
    async start(job) {
      await rm(outcomePath, { force: true });
      await rm(socketPath, { force: true });
      const input = JSON.stringify({ ...job, socket: socketPath, outcome: outcomePath });
      const argv = [process.execPath, ...heapOptions[load], program];
      await keeper.order({
        op: "start",
        component: { name, argv, env: heapEnvironment, cwd: "/", log, stop, deadlineMs: null, input },
      });
    },
    async stop() {
      if (!isEmpty()) await keeper.order({ op: "stop", name, ...stop });
    },
    send(message) {
      if (link !== undefined) send(link, message);
    },
    async outcome() {
      try {
        return JSON.parse(await readEngineFile(outcomePath)) as Report;
      } catch (error) {
        if (hasCode(error, "ENOENT")) return undefined;
        throw error;
      }
    },
    async ended(signal) {
      const emptied = Promise.withResolvers<void>();
      const subscription = keeper.subscribe((status) => {
        if (status.name === name && status.state === "empty") emptied.resolve();
      });
      const abort = () => emptied.reject(signal.reason as Error);
      signal.addEventListener("abort", abort, { once: true });
      try {
        signal.throwIfAborted();
        if (isEmpty()) return;
        await emptied.promise;
      } finally {
        signal.removeEventListener("abort", abort);
        subscription.close();
      }
    },
    started,
    async follow(signal) {
      while (!signal.aborted) {
        if (isEmpty()) await started(signal);
        else {
          await connectOnce(signal);
          await sleep(redialMs, undefined, { signal }).catch(() => undefined);
        }
      }
    },
  };

  async function started(signal: AbortSignal): Promise<void> {
    const present = Promise.withResolvers<void>();
    const subscription = keeper.subscribe((status) => {
      if (status.name === name && status.state !== "empty") present.resolve();
    });
    const abort = () => present.resolve();
    signal.addEventListener("abort", abort, { once: true });
    if (!isEmpty() || signal.aborted) present.resolve();
    await present.promise;
    signal.removeEventListener("abort", abort);
    subscription.close();
  }
}

/** Program of job components for an agent's main file: beside it in a bundle, in this folder in a checkout. */
export function jobProgramOf(agentMain: string): string {
  return extname(agentMain) === ".mjs" ? join(dirname(agentMain), "backup.mjs") : join(import.meta.dirname, "main.ts");
}
