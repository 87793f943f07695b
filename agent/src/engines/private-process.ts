import { setTimeout as sleep } from "node:timers/promises";
import { ProgramFailed } from "../os/program.ts";
import type { EngineDeps } from "./engine-deps.ts";

/** An engine that a component runs for itself, without clients. */
export interface PrivateProcess {
  /** Shuts down in order. */
  stop(): Promise<void>;
  /** Ends the process if it runs. */
  kill(): Promise<void>;
}

interface Start {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** True once the process serves the component. */
  serves(signal: AbortSignal): Promise<boolean>;
  readonly withinMs: number;
}

const pollMs = 100;
/** Length of the output's end that an error quotes. */
const quotedChars = 500;

/** Starts a JVM and resolves once it serves; throws with the end of its output if it ends before. */
export async function startPrivateProcess(
  { pipe }: Pick<EngineDeps, "pipe">,
  { argv, env, serves, withinMs }: Start,
  signal: AbortSignal,
): Promise<PrivateProcess> {
  const finished = new AbortController();
  const process = pipe(argv, { env, signal: AbortSignal.any([signal, finished.signal]) });
  let printed = "";
  const read = async () => {
    for await (const bytes of process.output) printed = (printed + bytes.toString("utf8")).slice(-quotedChars);
  };
  const ended = read().then(() => process.ended);
  ended.catch(() => undefined);

  async function kill(): Promise<void> {
    finished.abort();
    await ended.catch(() => undefined);
  }

  try {
    const until = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    while (!(await serves(until))) {
      const errors = await Promise.race([ended, sleep(pollMs, undefined, { signal: until })]);
      if (errors !== undefined) throw new Error(`the private engine ended: ${(printed + errors).slice(-quotedChars)}`);
    }
  } catch (error) {
    await kill();
    if (!(error instanceof ProgramFailed)) throw error;
    throw new Error(`the private engine ended: ${printed.trim()}`, { cause: error });
  }
  return {
    async stop() {
      process.signal("SIGTERM");
      // A JVM that ends by SIGTERM reports it as its status.
      await ended.catch((error: unknown) => {
        if (!(error instanceof ProgramFailed) || !/ended with 143|died of SIGTERM/.test(error.message)) throw error;
      });
    },
    kill,
  };
}

/** Does the work while the process runs, and ends it. */
export async function withPrivateProcess<T>(process: PrivateProcess, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    await process.stop();
    return result;
  } finally {
    await process.kill();
  }
}
