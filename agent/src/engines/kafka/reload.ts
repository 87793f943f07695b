import type { Instance } from "../engine-driver.ts";
import { applyAllowLists, applyCertificate } from "../front/front-commands.ts";
import { frontOf, frontsOf } from "./front.ts";
import { configureHeartbeatTopic } from "./heartbeat.ts";
import { applyParameters } from "./parameters.ts";
import { withSession } from "./session.ts";
import { convergeWriteBlock } from "./write-block.ts";

/**
 * Applies changed settings to the running broker, the allow-list first, so that forbidden sessions end without delay.
 * Only the front has a certificate of the platform. Throws EngineRefused for a parameter that the broker rejects.
 */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  for (const front of frontsOf(instance)) await applyAllowLists(front, signal);
  await applyCertificate(frontOf(instance), signal);
  await withSession(instance, signal, async (session) => {
    await convergeWriteBlock(instance, session);
    await configureHeartbeatTopic(session);
  });
  await applyParameters(instance, signal);
}
