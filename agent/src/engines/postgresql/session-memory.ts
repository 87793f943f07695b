import type { Instance } from "../engine-driver.ts";
import { insightLane } from "./insight-lane.ts";
import { withSession } from "./session.ts";

const mib = 1 << 20;

/**
 * Bytes of private memory that any process of the engine may have. A process that exhausts the machine's memory is killed, and the
 * postmaster then restarts all sessions; one at this limit gets an error. Shared buffers take a quarter of the memory, and
 * agent and keeper 192 MiB.
 */
export function sessionMemoryBytes({ spec }: Pick<Instance, "spec">): number {
  const memory = Number(spec.memoryBytes);
  return Math.max(Math.floor(Math.min(memory / 2, (memory * 3) / 4 - 192 * mib) / mib) * mib, 128 * mib);
}

/** The same of a session of the console: the four that run at a time have half of the memory. */
export function consoleMemoryBytes({ spec }: Pick<Instance, "spec">): number {
  return Math.min(Math.max(Math.floor(Number(spec.memoryBytes) / 8 / mib) * mib, 64 * mib), 1_024 * mib);
}

/** The words before a program's: it and its children may have so much private memory each. */
export function withMemory(bytes: number): string[] {
  return ["prlimit", `--data=${bytes}`];
}

/**
 * Lowers the limit of one session for good. No statement can do that, and the agent is another user in another namespace than
 * the engine, so a session of the superuser's runs the program.
 */
export async function limitSession(instance: Instance, pid: string, bytes: number, signal: AbortSignal): Promise<void> {
  if (!/^\d+$/.test(pid)) throw new Error(`not the number of a process: ${pid}`);
  // Without rows nothing is written to the program, which reads nothing.
  const sql = `COPY (SELECT 1 WHERE false) TO PROGRAM 'prlimit --pid=${pid} --data=${bytes}'`;
  const run = () => withSession(instance, signal, (session) => session.rows(sql), { statementMs: 5_000 });
  await insightLane.run(run, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    // Its code is the engine's, but it is no answer to the user's statement.
    throw new Error("the memory of a session of the console could not be limited", { cause });
  });
}
