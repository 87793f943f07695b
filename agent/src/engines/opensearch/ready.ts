import { setTimeout as sleep } from "node:timers/promises";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { convergeRoles } from "./access.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { forgetForming } from "./bootstrap.ts";
import { readCluster } from "./cluster-view.ts";
import { frontOf, openFront, securityHealthPath } from "./front.ts";
import { createHeartbeatIndex, hasHeartbeatIndex, probe } from "./heartbeat.ts";
import { ownNumber } from "./layout.ts";
import { defaultReplicas, putSettings } from "./membership.ts";
import { applyParameters } from "./parameters.ts";
import { putUser, users } from "./users.ts";

const retryMs = 100;

/**
 * Resolves when the engine accepts a write, its front listens, and users of the first settings exist. Those are created
 * only once in the life of the cluster, so that a user dropped later stays dropped.
 */
export async function ready(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await endForbiddenSessions(frontOf(instance), signal);
      await initialize(instance, signal);
      await openFront(instance, signal);
      return await forgetForming(deps, instance, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isStarting(error)) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

async function initialize(instance: Instance, signal: AbortSignal): Promise<void> {
  await requireSecurity(instance, signal);
  if (!(await hasHeartbeatIndex(instance, signal))) await createFirstContents(instance, signal);
  await convergeRoles(instance, signal);
  await applyParameters(instance, signal);
  await probe(instance, signal);
}

/** Done by the leader alone, for all members. */
async function createFirstContents(instance: Instance, signal: AbortSignal): Promise<void> {
  const { leader, nodes } = await readCluster(instance, signal);
  if (leader !== ownNumber(instance)) throw new OpensearchRefusal(503, "", "the leader creates the first users");
  const present = new Set((await users.list(instance, signal)).map(({ username }) => username));
  // A password that was changed since is never set back.
  for (const user of instance.spec.users) if (!present.has(user.username)) await putUser(instance, user, signal);
  await putSettings(instance, { [defaultReplicas]: nodes.length > 1 ? "1" : "0" }, signal);
  await createHeartbeatIndex(instance, signal);
}

/** Throws while the plugin has not read its index: a change before would create an index without its first contents. */
export async function requireSecurity(instance: Instance, signal: AbortSignal): Promise<void> {
  const answer = await call(instance, { method: "GET", path: securityHealthPath }, signal);
  const { status } = answer as { status?: string };
  if (status !== "UP") throw new OpensearchRefusal(503, "", "the security plugin is not initialized");
}

const startingCodes = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"];

const startingStatuses = [409, 429, 500, 503];

/**
 * True while the engine does not listen yet, has no leader, or its security plugin is not initialized; also if another
 * member made the same change at the same time (409).
 */
export function isStarting(error: unknown): boolean {
  if (error instanceof OpensearchRefusal) return startingStatuses.includes(error.status);
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return startingCodes.includes(code) || error.message === "socket hang up";
}
