import { setTimeout as sleep } from "node:timers/promises";
import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance, EngineDriver, Instance } from "../engines/engine-driver.ts";
import { measureDisk } from "../os/disk-space.ts";
import type { InstanceStatus } from "./instance-status.ts";

/**
 * Keeps the data at the version that the settings name, for an engine whose files differ between versions. Data are
 * upgraded, and rolled back, only while the settings admit no client. Settings that admit one remove the data of
 * before, and with them the way back.
 */
export interface DataVersion {
  /** Must the engine that runs end first, because its data are of another version? */
  mustStop(driver: EngineDriver, instance: Instance): Promise<boolean>;
  /** Resolves when the data are of the version. No engine may run. Throws with words for users. */
  ensure(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void>;
  /** The engine runs over data that may just have been upgraded, and nobody is admitted yet. */
  finish(driven: DrivenInstance, signal: AbortSignal): Promise<void>;
  /** Before settings are in force that may admit clients. */
  beforeClients(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void>;
}

/** Are the data files of a version that the engine does not read? False where files do not differ between versions. */
export async function isOfOtherVersion({ upgrade }: EngineDriver, instance: Instance): Promise<boolean> {
  const has = await upgrade?.versionOf(instance);
  return has !== undefined && has !== instance.spec.version;
}

const tellEveryMs = 5_000;

export function createDataVersion({ status, log }: { status: Pick<InstanceStatus, "become">; log: Log }): DataVersion {
  async function upgrade(driver: EngineDriver, instance: Instance, from: string, signal: AbortSignal): Promise<void> {
    const { spec, paths } = instance;
    const over = new AbortController();
    const used = () => measureDisk(paths.data, Number(spec.storageBytes), signal).then(({ usedBytes }) => usedBytes);
    const before = await used();
    const startedAt = performance.now();
    const telling = (async () => {
      while (!over.signal.aborted) {
        const mib = Math.max(0, Math.round(((await used()) - before) / 1_048_576));
        if (!over.signal.aborted)
          status.become("preparing", `Its data are upgraded from ${from} to ${spec.version}: ${mib} MiB are written.`);
        await sleep(tellEveryMs, undefined, { signal: over.signal });
      }
    })().catch(() => undefined);
    try {
      await driver.upgrade?.upgrade(instance, from, signal);
    } finally {
      over.abort();
      await telling;
    }
    const ms = Math.round(performance.now() - startedAt);
    log.info("data upgraded", { service: spec.serviceId, from, to: spec.version, ms });
  }

  return {
    mustStop: isOfOtherVersion,
    async ensure(driver, instance, signal) {
      const { upgrade: facet } = driver;
      const { spec } = instance;
      if (facet === undefined) return;
      const has = await facet.versionOf(instance);
      if (has === undefined || has === spec.version) return;
      const kept = await facet.keptVersionOf(instance);
      if (kept === spec.version) {
        await facet.goBack(instance, signal);
        log.info("data of before put back", { service: spec.serviceId, from: has, to: kept });
        return;
      }
      const isOlder = compareVersions(has, spec.version) < 0;
      if (!isOlder || kept !== undefined)
        throw new Error(`Its data are of ${spec.engine} ${has}, which ${spec.version} does not read.`);
      if (!spec.onTrial)
        throw new Error(`Its data are of ${spec.engine} ${has}, and are upgraded only while no client is admitted.`);
      await upgrade(driver, instance, has, signal);
    },
    async finish({ driver, instance }, signal) {
      const { upgrade: facet } = driver;
      if (facet === undefined || (await facet.keptVersionOf(instance)) === undefined) return;
      await facet.finish(instance, signal);
    },
    async beforeClients(driver, instance, signal) {
      if (!instance.spec.onTrial) await driver.upgrade?.forget(instance, signal);
    },
  };
}
