import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { convergeRoles } from "./access.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { frontOf } from "./front.ts";
import { createHeartbeatIndex, hasHeartbeatIndex, probe } from "./heartbeat.ts";
import { applyParameters } from "./parameters.ts";
import { putUser, users } from "./users.ts";

const retryMs = 100;

/**
 * Resolves when the engine accepts a write, its front listens, and users of the first settings exist. Those are created
 * only once in the life of the cluster, so that a user dropped later stays dropped.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await endForbiddenSessions(frontOf(instance), signal);
      await initialize(instance, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!isStarting(error)) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

async function initialize(instance: Instance, signal: AbortSignal): Promise<void> {
  await requireSecurity(instance, signal);
  await convergeRoles(instance, signal);
  if (!(await hasHeartbeatIndex(instance, signal))) {
    const present = new Set((await users.list(instance, signal)).map(({ username }) => username));
    // A password that was changed since is never set back.
    for (const user of instance.spec.users) if (!present.has(user.username)) await putUser(instance, user, signal);
    await createHeartbeatIndex(instance, signal);
  }
  await applyParameters(instance, signal);
  await probe(instance, signal);
}

/** Throws while the plugin has not read its index: a change before would create an index without its first contents. */
export async function requireSecurity(instance: Instance, signal: AbortSignal): Promise<void> {
  const answer = await call(instance, { method: "GET", path: "/_plugins/_security/health?mode=strict" }, signal);
  const { status } = answer as { status?: string };
  if (status !== "UP") throw new OpensearchRefusal(503, "", "the security plugin is not initialized");
}

const startingCodes = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"];

/** True while the engine does not listen yet, has no leader, or its security plugin is not initialized. */
export function isStarting(error: unknown): boolean {
  if (error instanceof OpensearchRefusal) return error.status === 503 || error.status === 500 || error.status === 429;
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return startingCodes.includes(code) || error.message === "socket hang up";
}
