import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import { applyAllowList, applyCertificate } from "./listener.ts";
import {
  blockingParameter,
  copySettings,
  isBlockingLimit,
  noSnapshots,
  wantedMaxmemory,
  wantedParameters,
} from "./render.ts";
import { certificateSettings, liveSettings } from "./replication/peer-way.ts";
import { type Session, withSession } from "./session.ts";

/** Allow-list first: what it forbids must not wait for anything. */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  await applyAllowList(instance, signal);
  await applyCertificate(instance, signal);
  await withSession(instance, signal, async (session) => {
    await session.call("CONFIG", "SET", ...copySettings.flat(), ...noSnapshots.flat());
    if (instance.spec.replication !== undefined)
      await session.call("CONFIG", "SET", ...liveSettings.flat(), ...certificateSettings(instance).flat());
    const wanted = wantedParameters(instance);
    await limitMemory(instance, session, wanted.get(blockingParameter) ?? "noeviction");
    const now = await runningParameters(instance, session);
    const known = parametersOf("valkey", instance.spec.version);
    const changed = [...wanted].filter(
      ([name, value]) => known.get(name)?.needsRestart === false && now.get(name) !== value,
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
 * By itself, before what the engine might refuse, and with the policy in one step: nothing is evicted for a limit that blocks.
 * Another plan's limit comes with the restart.
 */
async function limitMemory(instance: Instance, session: Session, policy: string): Promise<void> {
  const [, now] = (await session.call("CONFIG", "GET", "maxmemory")) as string[];
  const isOther = isBlockingLimit(now) !== (instance.writesBlocked === true);
  const limit = isOther ? ["maxmemory", wantedMaxmemory(instance)] : [];
  await session.call("CONFIG", "SET", blockingParameter, policy, ...limit);
}

/** What the engine runs with, of the parameters in the catalog. */
export async function runningParameters(instance: Instance, session: Session): Promise<Map<string, string>> {
  const names = [...effectiveParameters(instance).keys()];
  const answer = (await session.call("CONFIG", "GET", ...names)) as string[];
  const values = new Map<string, string>();
  for (let at = 0; at + 1 < answer.length; at += 2) values.set(answer[at] ?? "", answer[at + 1] ?? "");
  return values;
}
