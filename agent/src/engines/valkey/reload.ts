import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import { applyAllowLists, applyCertificate } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";
import {
  blockingParameter,
  copySettings,
  isBlockingLimit,
  snapshotsOffSettings,
  desiredMaxmemory,
  desiredParameters,
} from "./render.ts";
import { certificateSettings, liveSettings } from "./replication/peer-port.ts";
import { type Session, withSession } from "./session.ts";

/**
 * Applies changed settings to the running engine, the allow-list first, so that forbidden sessions end without delay.
 * Throws EngineRefused for a parameter that the engine rejects.
 */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  const front = frontOf(instance);
  await applyAllowLists(front, signal);
  await applyCertificate(front, signal);
  await withSession(instance, signal, async (session) => {
    await session.call("CONFIG", "SET", ...copySettings.flat(), ...snapshotsOffSettings.flat());
    if (instance.spec.replication !== undefined)
      await session.call("CONFIG", "SET", ...liveSettings.flat(), ...certificateSettings(instance).flat());
    const desired = desiredParameters(instance);
    await limitMemory(instance, session, desired.get(blockingParameter) ?? "noeviction");
    const now = await runningParameters(instance, session);
    const catalog = parametersOf("valkey", instance.spec.version);
    const changed = [...desired].filter(
      ([name, value]) => catalog.get(name)?.needsRestart === false && now.get(name) !== value,
    );
    if (changed.length === 0) return;
    try {
      await session.call("CONFIG", "SET", ...changed.flat());
    } catch (error) {
      if (error instanceof EngineBusy) throw error;
      throw new EngineRefused(error instanceof Error ? error.message : String(error), { cause: error });
    }
  });
}

/**
 * Sets the memory limit separately from other parameters, which the engine may refuse, and together with the eviction
 * policy: a limit that only blocks writes must evict no key. The limit of another plan is applied at the next restart.
 */
async function limitMemory(instance: Instance, session: Session, policy: string): Promise<void> {
  const [, now] = (await session.call("CONFIG", "GET", "maxmemory")) as string[];
  const mustChange = isBlockingLimit(now) !== (instance.writesBlocked === true);
  const limit = mustChange ? ["maxmemory", desiredMaxmemory(instance)] : [];
  await session.call("CONFIG", "SET", blockingParameter, policy, ...limit);
}

/** Values of the catalog's parameters that the engine runs with. */
export async function runningParameters(instance: Instance, session: Session): Promise<Map<string, string>> {
  const names = [...effectiveParameters(instance).keys()];
  const reply = (await session.call("CONFIG", "GET", ...names)) as string[];
  const values = new Map<string, string>();
  for (let at = 0; at + 1 < reply.length; at += 2) values.set(reply[at] ?? "", reply[at + 1] ?? "");
  return values;
}
