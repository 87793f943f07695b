import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { addAcls, reservedNames } from "./access.ts";
import { loadCoordinators } from "./coordinators.ts";
import { frontsOf } from "./front.ts";
import { configureHeartbeatTopic, createHeartbeatTopic, hasHeartbeatTopic, probe } from "./heartbeat.ts";
import { ownNumber, restoredFile } from "./layout.ts";
import { applyParameters } from "./parameters.ts";
import { type Connection, isDisconnection } from "./protocol/connection.ts";
import { errorCodes, isTransient, KafkaRefusal } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";
import { replicationFactorOf } from "./settings.ts";
import { completeUsers, createFirstAccount, putUser } from "./users.ts";
import { convergeWriteBlock } from "./write-block.ts";

const retryMs = 50;
const probeMs = 2_000;

/**
 * Resolves when the broker accepts a write, its front listens, and users of the first settings exist. Those are created
 * only once in the life of the cluster, so that a user dropped later stays dropped.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      for (const front of frontsOf(instance)) await endForbiddenSessions(front, signal);
      await withSession(instance, signal, (session) => initialize(instance, session, signal));
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!isStarting(error)) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

async function initialize(instance: Instance, session: Connection, signal: AbortSignal): Promise<void> {
  if (!(await hasHeartbeatTopic(session))) {
    await addAcls(session, reservedNames);
    await createFirstAccount(session);
    // A password that was changed since is never set back.
    const present = await completeUsers(session);
    for (const user of instance.spec.users)
      if (!present.includes(user.username)) await putUser(instance, session, user, signal);
    // The members of a restored cluster join later, and the topics are replicated then.
    await createHeartbeatTopic(session, existsSync(restoredFile(instance)) ? 1 : replicationFactorOf(instance));
  }
  await loadCoordinators(session, ownNumber(instance));
  await convergeWriteBlock(instance, session);
  await configureHeartbeatTopic(session);
  await applyParameters(instance, signal);
  await probe(instance, session, probeMs);
}

const startingCodes = ["ENOENT", "ECONNREFUSED"];

/** True while the broker does not listen yet, or has no leader for what it serves. */
function isStarting(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  // Other members have not started yet.
  if (error instanceof KafkaRefusal && error.code === errorCodes.invalidReplicationFactor) return true;
  return isTransient(error) || startingCodes.includes(code) || isDisconnection(error);
}
