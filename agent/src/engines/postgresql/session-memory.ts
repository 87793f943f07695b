import type { Instance } from "../engine-driver.ts";
import { insightLane } from "./sessions.ts";
import { withSession } from "./session.ts";

const mib = 1 << 20;

/**
 * Limit of private memory of each engine process (RLIMIT_DATA), in bytes. If the machine's memory runs out, a process
 * is killed and the postmaster restarts all sessions, whereas a process at this limit gets an error. Shared buffers
 * take a quarter of the memory, and agent and keeper 192 MiB.
 */
export function sessionMemoryBytes({ spec }: Pick<Instance, "spec">): number {
  const memory = Number(spec.memoryBytes);
  return Math.max(Math.floor(Math.min(memory / 2, (memory * 3) / 4 - 192 * mib) / mib) * mib, 128 * mib);
}

/** Limit of a console session: the four that may run at a time have half of the memory. */
export function consoleMemoryBytes({ spec }: Pick<Instance, "spec">): number {
  return Math.min(Math.max(Math.floor(Number(spec.memoryBytes) / 8 / mib) * mib, 64 * mib), 1_024 * mib);
}

/** Prefix of a command line that limits the private memory of the program and its children. */
export function memoryLimitArgv(bytes: number): string[] {
  return ["prlimit", `--data=${bytes}`];
}

/**
 * Lowers the memory limit of one session, until its end. There is no SQL statement for that, and the agent runs as
 * another user in another namespace, so a superuser's session runs prlimit.
 */
export async function limitSession(instance: Instance, pid: string, bytes: number, signal: AbortSignal): Promise<void> {
  if (!/^\d+$/.test(pid)) throw new Error(`${pid} is not a process id`);
  // Without rows nothing is written to the program.
  const sql = `COPY (SELECT 1 WHERE false) TO PROGRAM 'prlimit --pid=${pid} --data=${bytes}'`;
  const run = () => withSession(instance, signal, (session) => session.rows(sql), { statementMs: 5_000 });
  await insightLane(run, { signal }).catch((cause: unknown) => {
    signal.throwIfAborted();
    // The error has an SQLSTATE but the user's statement did not cause it.
    throw new Error("the memory limit of a console session could not be set", { cause });
  });
}
