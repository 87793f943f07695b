import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { applyAllowLists, applyCertificate } from "../front/front-commands.ts";
import { writeMemberFiles } from "./certificates.ts";
import { frontOf } from "./front.ts";
import { alterBroker, applyParameters } from "./parameters.ts";
import { withSession } from "./session.ts";
import { certificateSettings } from "./settings.ts";
import { settleWriteBlock } from "./write-block.ts";

/**
 * Applies changed settings to the running broker, the allow-list first, so that forbidden sessions end without delay.
 * Throws EngineRefused for a parameter that the broker rejects.
 */
export function createReload(deps: Pick<EngineDeps, "runAsEngine">) {
  return async (instance: Instance, signal: AbortSignal): Promise<void> => {
    const front = frontOf(instance);
    await applyAllowLists(front, signal);
    await applyCertificate(front, signal);
    await writeMemberFiles(deps, instance, signal);
    await withSession(instance, signal, async (session) => {
      await settleWriteBlock(instance, session);
      // Equal values make the broker read the files again.
      await alterBroker(instance, session, certificateSettings(instance));
      await applyParameters(instance, session);
    });
  };
}
