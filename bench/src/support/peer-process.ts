import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { join } from "node:path";

/** A server in a process of its own, on one core, that answers questions over its channel. */
export interface PeerProcess {
  readonly pid: number;
  /** What it said when it was ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  ask<T>(question: object): Promise<T>;
  end(): Promise<void>;
}

/** Core of the servers; the load is on another one. */
export const serverCore = 0;
export const loadCore = 1;

/** Starts `bench/src/peers/<name>.ts`; resolves when it says that it is ready. */
export async function startPeer(name: string, settings: object): Promise<PeerProcess> {
  const child = fork(join(import.meta.dirname, "..", "peers", `${name}.ts`), [JSON.stringify(settings)], {
    execArgv: ["--expose-gc", "--disable-warning=DEP0123"],
  });
  pin(child.pid ?? 0, serverCore);
  const ready = await answerOf<Record<string, unknown>>(child);
  return {
    pid: child.pid ?? 0,
    ready,
    ask(question) {
      const answer = answerOf<never>(child);
      child.send(question);
      return answer;
    },
    end: () =>
      new Promise((resolve) => {
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}

/** Keeps a process with all of its threads on one core. */
export function pin(pid: number, core: number): void {
  const { status, stderr } = spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(core), String(pid)], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

function answerOf<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a peer ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as T);
    });
  });
}
