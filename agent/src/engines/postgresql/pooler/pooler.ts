import type { Companion, EngineCheck, Instance } from "../../engine-driver.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { codeOf, messageOf } from "../session.ts";
import { poolerKeyFile, poolerProgram } from "../layout.ts";
import { keyFiles, updateKeyCopy, keyCopyArgv } from "../key-copy.ts";
import { endForbiddenClients, reloadFiles } from "./console.ts";

/** PgBouncer as a companion of the engine. Clients of the engine's own port do not depend on it. */
export interface Pooler {
  /** True if the machine's image contains the program. */
  isInstalled(instance: Pick<Instance, "paths">, signal: AbortSignal): Promise<boolean>;
  /** The process, whether it is to run or not. */
  companion(instance: Instance): Companion;
  /**
   * Reloads a running pooler and disconnects the clients that its files forbid. One that is not up yet starts with the
   * files. While users' writes are blocked, and once they are allowed again, all clients are disconnected.
   */
  reload(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Health check; it also disconnects clients that the allow-list does not contain. Undefined if the pooler is
   * disabled.
   */
  check(instance: Instance, signal: AbortSignal): Promise<EngineCheck | undefined>;
}

export function createPooler(deps: EngineDeps): Pooler {
  /** Programs that were not found; an unchecked one is assumed to be installed. */
  const missing = new Set<string>();
  const found = new Set<string>();
  /** True, by node, if clients of the pooler connected while users' writes were blocked. */
  const blocked = new Map<string, boolean>();

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
      const key = keyCopyArgv(keyFiles(instance, poolerKeyFile(instance)));
      return {
        name: "pooler",
        command: {
          argv: [...key, poolerProgram(instance), `${instance.paths.config}/pooler.ini`],
          env: { LC_ALL: "C", TZ: "UTC" },
          cwd: "/",
        },
        // SIGQUIT does not wait for transactions: the engine stops next and ends them anyway.
        stop: { signal: "SIGQUIT", graceMs: 2_000 },
        isOptional: true,
        isEnabled: instance.spec.pooler !== undefined && !isMissing(instance),
      };
    },
    async reload(instance, signal) {
      if (instance.spec.pooler === undefined || isMissing(instance)) return;
      await updateKeyCopy(deps, keyFiles(instance, poolerKeyFile(instance)), signal);
      try {
        const { nodeId } = instance.spec;
        const isBlocked = instance.writesBlocked === true;
        await reloadFiles(instance, signal, { renew: isBlocked || blocked.get(nodeId) === true });
        blocked.set(nodeId, isBlocked);
      } catch (error) {
        if (!isNotRunning(error)) throw error;
      }
    },
    async check(instance, signal) {
      if (instance.spec.pooler === undefined) return undefined;
      // A restarted agent has no record of clients that connected while writes were blocked.
      if (instance.writesBlocked === true) blocked.set(instance.spec.nodeId, true);
      const unhealthy = (reason: string): EngineCheck => ({ name: "pooler", status: "unhealthy", reason });
      if (isMissing(instance)) return unhealthy("The machine's image has no pooler. Update the image.");
      try {
        await endForbiddenClients(instance, signal);
        return { name: "pooler", status: "healthy", reason: "" };
      } catch (error) {
        return unhealthy(isNotRunning(error) ? "The pooler does not run." : messageOf(error));
      }
    },
  };
}

function isNotRunning(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED"].includes(codeOf(error));
}
