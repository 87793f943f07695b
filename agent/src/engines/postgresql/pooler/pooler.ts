import type { Companion, EngineCheck, Instance } from "../../engine-driver.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { codeOf, messageOf } from "../session.ts";
import { poolerKeyFile, poolerProgram } from "../layout.ts";
import { keyFiles, takeKey, withOwnKey } from "../own-key.ts";
import { endForbiddenClients, readFilesAgain } from "./console.ts";

/** PgBouncer beside the engine. Clients of the engine's own port do not depend on it. */
export interface Pooler {
  /** Is the program in the machine's image? */
  isInstalled(instance: Pick<Instance, "paths">, signal: AbortSignal): Promise<boolean>;
  /** The process, whether it is to run or not. */
  companion(instance: Instance): Companion;
  /** Has a running one take its files, and ends the clients that these forbid. One that is not there yet begins with them. */
  reload(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Does it answer? Ends clients that the allow-list does not have. Undefined while none is wanted. */
  check(instance: Instance, signal: AbortSignal): Promise<EngineCheck | undefined>;
}

export function createPooler(deps: EngineDeps): Pooler {
  /** As long as nobody asked it is taken for there. */
  const missing = new Set<string>();
  const found = new Set<string>();

  async function isInstalled({ paths }: Pick<Instance, "paths">, signal: AbortSignal): Promise<boolean> {
    const program = poolerProgram({ paths });
    if (found.has(program) || missing.has(program)) return found.has(program);
    try {
      await deps.run([program, "--version"], { signal });
      found.add(program);
    } catch {
      signal.throwIfAborted();
      missing.add(program);
    }
    return found.has(program);
  }

  const isMissing = (instance: Instance) => missing.has(poolerProgram(instance));

  return {
    isInstalled,
    companion(instance) {
      const key = withOwnKey(keyFiles(instance, poolerKeyFile(instance)));
      return {
        name: "pooler",
        command: {
          argv: [...key, poolerProgram(instance), `${instance.paths.config}/pooler.ini`],
          env: { LC_ALL: "C", TZ: "UTC" },
          cwd: "/",
        },
        // At once: whoever is in a transaction loses it with the engine, which stops next.
        stop: { signal: "SIGQUIT", graceMs: 2_000 },
        isOptional: true,
        isWanted: instance.spec.pooler !== undefined && !isMissing(instance),
      };
    },
    async reload(instance, signal) {
      if (instance.spec.pooler === undefined || isMissing(instance)) return;
      await takeKey(deps, keyFiles(instance, poolerKeyFile(instance)), signal);
      try {
        await readFilesAgain(instance, signal);
      } catch (error) {
        if (!isAway(error)) throw error;
      }
    },
    async check(instance, signal) {
      if (instance.spec.pooler === undefined) return undefined;
      const not = (reason: string): EngineCheck => ({ name: "pooler", status: "unhealthy", reason });
      if (isMissing(instance)) return not("The machine's image has no pooler. Update the image.");
      try {
        await endForbiddenClients(instance, signal);
        return { name: "pooler", status: "healthy", reason: "" };
      } catch (error) {
        return not(isAway(error) ? "The pooler does not run." : messageOf(error));
      }
    },
  };
}

function isAway(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED"].includes(codeOf(error));
}
