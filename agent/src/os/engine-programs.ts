import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import { segmentsOf } from "../../keeper/segment-log.ts";
import { ProgramFailed, type RunProgram } from "./program.ts";
import type { ComponentStatus, KeeperClient } from "./keeper-client.ts";

/** Name of the component that runs one program to its end, by the role that it has. */
const programComponents = { engine: "program", container: "container-program" } as const;

/** True for a component that runs a program to its end, which is no part of the workload. */
export function isProgram(component: string): boolean {
  return Object.values(programComponents).some((name) => name === component);
}

const maxOutputBytes = 16 << 20;

/**
 * Runs programs as the engine's user, or as root of a container's user namespace, one at a time, as a component of the
 * keeper, since only the keeper can switch to that user.
 */
export function createEnginePrograms(
  keeper: KeeperClient,
  stateDir: string,
  role: keyof typeof programComponents = "engine",
): RunProgram {
  const name = programComponents[role];
  const path = join(stateDir, "log", name);
  const stop = { signal: "SIGKILL", graceMs: 0 } as const;
  const exclusive = createMutex();

  async function takeOutput(): Promise<string> {
    const files = segmentsOf(path).map((segment) => `${path}.${segment}`);
    const parts = await Promise.all(files.map((file) => readFile(file, "utf8")));
    for (const file of files) await rm(file);
    return parts.join("");
  }

  const run: RunProgram = async (argv, { input, env = {}, signal }) => {
    // A program of an earlier agent may still run: it is stopped and its output discarded.
    await keeper.order({ op: "stop", name, ...stop });
    await takeOutput();
    const emptied = Promise.withResolvers<ComponentStatus>();
    const subscription = keeper.subscribe((status) => {
      if (status.name === name && status.state === "empty") emptied.resolve(status);
    });
    const kill = () => {
      keeper.order({ op: "stop", name, ...stop }).catch(emptied.reject);
    };
    try {
      const log = { path, maxBytes: maxOutputBytes, keep: 1 };
      const component = {
        name,
        argv,
        env,
        cwd: "/",
        log,
        stop,
        deadlineMs: null,
        input: input ?? "",
        ...(role === "container" && { role }),
      };
      await keeper.order({ op: "start", component });
      signal.addEventListener("abort", kill, { once: true });
      if (signal.aborted) kill();
      const { exit } = await emptied.promise;
      signal.throwIfAborted();
      const output = await takeOutput();
      if (exit?.code === 0) return output;
      const outcome = exit?.code == null ? `died of ${exit?.signal}` : `ended with ${exit.code}`;
      throw new ProgramFailed(argv[0] ?? "", outcome, output);
    } finally {
      subscription.close();
      signal.removeEventListener("abort", kill);
    }
  };

  return (argv, options) => exclusive(() => run(argv, options), { signal: options.signal });
}
