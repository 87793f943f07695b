import { setTimeout as sleep } from "node:timers/promises";
import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance, EngineDriver, Instance } from "../../engines/engine-driver.ts";
import { measureDisk } from "../../os/disk-space.ts";
import type { InstanceStatus } from "./instance-status.ts";

/**
 * Upgrades the data to the engine version of the settings, for an engine whose file format differs between versions.
 * Data are upgraded or rolled back only while the settings admit no client. Settings that admit clients discard the
 * retained old data, after which the upgrade cannot be rolled back.
 */
export interface DataVersion {
  /** True if the running engine must stop first because its data are of another version. */
  mustStop(driver: EngineDriver, instance: Instance): Promise<boolean>;
  /** Resolves once the data are of the version of the settings. No engine may run. Throws messages for users. */
  ensure(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void>;
  /** Finishes an upgrade with the engine running, before clients are admitted. */
  finish(driven: DrivenInstance, signal: AbortSignal): Promise<void>;
  /** Discards retained old data, before settings that admit clients take effect. */
  beforeClients(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void>;
}

/** True if the data files are of a version that the engine cannot read; false if its format does not change. */
export async function hasOtherVersion({ upgrade }: EngineDriver, instance: Instance): Promise<boolean> {
  const has = await upgrade?.versionOf(instance);
  return has !== undefined && has !== instance.spec.version;
}

const reportIntervalMs = 5_000;

export function createDataVersion({
  status,
  log,
}: {
  status: Pick<InstanceStatus, "setState">;
  log: Log;
}): DataVersion {
  async function upgrade(driver: EngineDriver, instance: Instance, from: string, signal: AbortSignal): Promise<void> {
    const { spec, paths } = instance;
    const finished = new AbortController();
    const used = () => measureDisk(paths.data, Number(spec.storageBytes), signal).then(({ usedBytes }) => usedBytes);
    const before = await used();
    const startedAt = performance.now();
    const reporting = (async () => {
      while (!finished.signal.aborted) {
        const mib = Math.max(0, Math.round(((await used()) - before) / 1_048_576));
        if (!finished.signal.aborted)
          status.setState(
            "preparing",
            `Its data are upgraded from ${from} to ${spec.version}: ${mib} MiB are written.`,
          );
        await sleep(reportIntervalMs, undefined, { signal: finished.signal });
      }
    })().catch(() => undefined);
    try {
      await driver.upgrade?.upgrade(instance, from, signal);
    } finally {
      finished.abort();
      await reporting;
    }
    const ms = Math.round(performance.now() - startedAt);
    log.info("data upgraded", { service: spec.serviceId, from, to: spec.version, ms });
  }

  return {
    mustStop: hasOtherVersion,
    async ensure(driver, instance, signal) {
      const { upgrade: facet } = driver;
      const { spec } = instance;
      if (facet === undefined) return;
      const has = await facet.versionOf(instance);
      if (has === undefined || has === spec.version) return;
      const retained = await facet.retainedVersionOf(instance);
      if (retained === spec.version) {
        await facet.rollBack(instance, signal);
        log.info("data rolled back", { service: spec.serviceId, from: has, to: retained });
        return;
      }
      const isOlder = compareVersions(has, spec.version) < 0;
      if (!isOlder || retained !== undefined)
        throw new Error(`The data have the format of ${spec.engine} ${has}, which ${spec.version} does not read.`);
      if (!spec.onCanary)
        throw new Error(
          `The data have the format of ${spec.engine} ${has}, and are upgraded only while no client is admitted.`,
        );
      await upgrade(driver, instance, has, signal);
    },
    async finish({ driver, instance }, signal) {
      const { upgrade: facet } = driver;
      if (facet === undefined || (await facet.retainedVersionOf(instance)) === undefined) return;
      await facet.finish(instance, signal);
    },
    async beforeClients(driver, instance, signal) {
      if (!instance.spec.onCanary) await driver.upgrade?.discardRetained(instance, signal);
    },
  };
}
