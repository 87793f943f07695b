import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../os/engine-file.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { Job, ObjectUseText, Report, ToAgent, ToComponent, UrlGrant } from "./job.ts";

/** One component of the keeper that does jobs, as the agent sees it. It may have been started by an agent before this one. */
export interface JobComponent {
  readonly isEmpty: boolean;
  /** Throws while another job is under way. */
  start(job: JobOf<Job>): Promise<void>;
  /** Resolves when nothing of it is left. */
  stop(): Promise<void>;
  send(message: ToComponent): void;
  /** Of the job that is under way, or was last; undefined when it left none, as one that was killed. */
  outcome(): Promise<Report | undefined>;
  /** Resolves when no job is under way. */
  ended(signal: AbortSignal): Promise<void>;
  /** Resolves when a job is under way, or with the signal. */
  begun(signal: AbortSignal): Promise<void>;
  /** Keeps in touch with whatever job is under way until the signal. */
  follow(signal: AbortSignal): Promise<void>;
}

type JobOf<J extends Job> = J extends Job ? Omit<J, "socket" | "outcome"> : never;

export interface JobComponentDeps {
  /** Name of the component: `backup`, `restore` or `archive`. */
  readonly name: string;
  /** `bulk`: it passes bytes on as fast as it can, and ends; `steady`: it is there all the time, and mostly waits. */
  readonly load: keyof typeof heapOptions;
  readonly keeper: KeeperClient;
  /** The component's program. */
  readonly program: string;
  /** Agent and engine share it; emptied at each start of the machine. */
  readonly runDir: string;
  readonly logDir: string;
  readonly onReport: (report: Report) => void;
  readonly mint: (uses: readonly ObjectUseText[], signal: AbortSignal) => Promise<UrlGrant>;
}

/** None of them is part of the engine. */
export const jobComponents: ReadonlySet<string> = new Set(["backup", "restore", "archive"]);

/**
 * How Node is started. Buffers that are passed on die young: a small young generation is collected often, which frees
 * them. An old one that may grow a little is not searched for them each time, which took half of the CPU time.
 */
export const heapOptions = {
  bulk: ["--max-semi-space-size=1", "--initial-old-space-size=64"],
  steady: ["--max-semi-space-size=1"],
} as const;

/** Each arena of the C library keeps what was freed in it. */
export const heapEnvironment = { MALLOC_ARENA_MAX: "2" } as const;

const redialMs = 100;
/** To end what it does in order: it has its own children. */
const graceMs = 5_000;

export function createJobComponent(deps: JobComponentDeps): JobComponent {
  const { name, load, keeper, program, runDir, logDir, onReport, mint } = deps;
  const socketPath = join(runDir, `${name}.sock`);
  const outcomePath = join(runDir, `${name}.outcome`);
  const stop = { signal: "SIGTERM", graceMs } as const;
  let link: Socket | undefined;

  const isEmpty = () => (keeper.component(name)?.state ?? "empty") === "empty";

  function say(socket: Socket, message: ToComponent): void {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
  }

  async function hear(socket: Socket, line: string, signal: AbortSignal): Promise<void> {
    const message = JSON.parse(line) as ToAgent;
    if ("report" in message) {
      onReport(message.report);
      return;
    }
    const { id, uses } = message.need;
    try {
      say(socket, { urls: { id, grant: await mint(uses, signal) } });
    } catch (error) {
      say(socket, { refused: { id, reason: error instanceof Error ? error.message : String(error) } });
    }
  }

  /** Resolves when the connection is over. */
  function talk(signal: AbortSignal): Promise<void> {
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
      // It throws what the socket fails with again.
      createInterface({ input: socket })
        .on("error", () => socket.destroy())
        .on("line", (line) => {
          // A line that is no message: the component dials again.
          hear(socket, line, signal).catch(() => socket.destroy());
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
      const log = { path: join(logDir, `${name}.log`), maxBytes: 1 << 20, keep: 2 };
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
      if (link !== undefined) say(link, message);
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
      const over = Promise.withResolvers<void>();
      const subscription = keeper.subscribe((status) => {
        if (status.name === name && status.state === "empty") over.resolve();
      });
      const abort = () => over.reject(signal.reason as Error);
      signal.addEventListener("abort", abort, { once: true });
      try {
        signal.throwIfAborted();
        if (isEmpty()) return;
        await over.promise;
      } finally {
        signal.removeEventListener("abort", abort);
        subscription.close();
      }
    },
    begun,
    async follow(signal) {
      while (!signal.aborted) {
        if (isEmpty()) await begun(signal);
        else {
          await talk(signal);
          await sleep(redialMs, undefined, { signal }).catch(() => undefined);
        }
      }
    },
  };

  async function begun(signal: AbortSignal): Promise<void> {
    const there = Promise.withResolvers<void>();
    const subscription = keeper.subscribe((status) => {
      if (status.name === name && status.state !== "empty") there.resolve();
    });
    const abort = () => there.resolve();
    signal.addEventListener("abort", abort, { once: true });
    if (!isEmpty() || signal.aborted) there.resolve();
    await there.promise;
    signal.removeEventListener("abort", abort);
    subscription.close();
  }
}
