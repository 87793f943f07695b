import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { join } from "node:path";
import { controllerFlags } from "@holdfast/controller/nodejs-flags.ts";
import type { Answer } from "./peer-queries.ts";

/**
 * A child process that is measured, or that loads a measured one, pinned to one core. It responds to queries over its
 * IPC channel.
 */
export interface PeerProcess {
  readonly pid: number;
  /** First message of the process. */
  readonly ready: Readonly<Record<string, unknown>>;
  query<T>(question: object): Promise<T>;
  end(): Promise<void>;
}

/** Core of the servers; the load runs on another one. */
export const serverCore = 0;
export const loadCore = 1;

/** Starts `bench/src/peers/<name>.ts`; resolves at its first message. */
export async function startPeer(name: string, settings: object, core = serverCore): Promise<PeerProcess> {
  const child = fork(join(import.meta.dirname, "..", "peers", `${name}.ts`), [JSON.stringify(settings)], {
    // Peers of a controller run with a controller's flags.
    execArgv: ["--expose-gc", "--disable-warning=DEP0123", ...controllerFlags],
  });
  pin(child.pid ?? 0, core);
  let pending = 0;
  return {
    pid: child.pid ?? 0,
    ready: await readiness(child),
    query(question) {
      const number = (pending += 1);
      const answer = answerOf<never>(child, number);
      child.send({ ...question, number });
      return answer;
    },
    end: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve();
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}

/** Pins a process with all of its threads to one core. */
export function pin(pid: number, core: number): void {
  const { status, stderr } = spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(core), String(pid)], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

/** The first message. */
function readiness(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) =>
      reject(new Error(`a measured process ended with ${code} before it was ready`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as Record<string, unknown>);
    });
  });
}

function answerOf<T>(child: ChildProcess, number: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const done = () => {
      child.off("exit", ended);
      child.off("message", onMessage);
    };
    const ended = (code: number | null, signal: string | null) => {
      done();
      reject(new Error(`a measured process ended with ${code ?? signal} instead of an answer`));
    };
    const onMessage = (message: unknown) => {
      const answer = message as Answer;
      if (answer.number !== number) return;
      done();
      if (answer.error === undefined) resolve(answer.value as T);
      else reject(new Error(answer.error));
    };
    child.once("exit", ended);
    child.on("message", onMessage);
  });
}
