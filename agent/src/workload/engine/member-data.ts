import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import type { Log } from "@holdfast/common/log.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import { dropArchiveState } from "../../backup/archive-state.ts";
import { effectiveParameters } from "../../engines/effective-parameters.ts";
import type { EngineDriver, Instance } from "../../engines/engine-driver.ts";
import { roleOf } from "../../engines/members.ts";
import type { DiscardedLog, ReplicationFacet } from "../../engines/replication-facet.ts";
import { measureDisk } from "../../os/disk-space.ts";
import { hasOtherVersion } from "./data-version.ts";
import type { InstanceStatus } from "./instance-status.ts";

/** Origin of a member's data that were copied from another member, in a file beside the data. */
interface MemberMarker {
  readonly serviceId: string;
  /** False while the data are incomplete; they must be copied again. */
  readonly finished: boolean;
  /** Log that the previous data had and the primary's lacked. */
  readonly discarded?: DiscardedLog;
  /** Version of the engine that last ran on the data as a replica. */
  readonly version: string;
}

/** Prepares a member's data for its role before the engine starts: a replica's data follow the primary. */
export interface MemberData {
  /** True if the running engine must stop first because its data have to become a replica's. */
  mustStop(driver: EngineDriver, instance: Instance): Promise<boolean>;
  /**
   * Resolves once a replica's data follow the primary: copied, or rewound if they were a primary's. With `isNew` no
   * engine has ever run on the existing data. No engine may run. Throws for a primary without data of the service or
   * with an incomplete copy.
   */
  ensure(driver: EngineDriver, instance: Instance, options: { isNew: boolean }, signal: AbortSignal): Promise<void>;
}

export interface MemberDataDeps {
  readonly status: Pick<InstanceStatus, "setState" | "setReplication" | "setDiskSpace" | "setDiscardedLog">;
  readonly log: Log;
}

const markerName = "member.json";
const markerFormat = storedFormat<MemberMarker>({ "discarded.savedBytes": "keptBytes" });
const discardedName = "discarded";
/** Divisor: discarded log may take this part of the disk, and at least 64 MiB. */
const discardedShare = 20;
const minDiscardedBytes = 64 << 20;
const reportIntervalMs = 2_000;

export function createMemberData({ status, log }: MemberDataDeps): MemberData {
  return {
    async mustStop(driver, instance) {
      if (roleOf(instance.spec) !== "replica" || driver.replication === undefined) return false;
      return !(await isFollower(driver, instance));
    },
    async ensure(driver, instance, { isNew }, signal) {
      const { spec, paths } = instance;
      if (spec.replication === undefined) return;
      const facet = driver.replication;
      if (facet === undefined)
        throw new Error(`This machine's agent does not support replication of ${spec.engine}. Upgrade the agent.`);
      if (roleOf(spec) !== "replica") {
        const marker = await readMarker(paths.data);
        if (marker?.finished === false)
          throw new Error("The data are an incomplete copy: another member has to be the primary.");
        // A service gets more members only after the first one has data. So these data belong to no service, and
        // all members would copy them.
        const hasNoData = (isNew && marker === undefined) || (await facet.dataRole(instance)) === "absent";
        if (hasNoData && spec.source === undefined)
          throw new Error("This machine has none of the service's data: another member has to be the primary.");
        return;
      }
      if (await isFollower(driver, instance)) {
        // Recorded before the engine writes a format that an older version cannot read.
        const marker = await readMarker(paths.data);
        if (marker !== undefined && marker.version !== spec.version)
          await writeMarker(paths.data, { ...marker, version: spec.version });
        status.setDiscardedLog(marker?.discarded);
        return;
      }
      const before = await readMarker(paths.data);
      const mayRewind = !isNew && before?.finished !== false && !(await hasOtherVersion(driver, instance));
      const previousRole = await facet.dataRole(instance);
      const discarded =
        mayRewind && previousRole === "primary" ? await saveDiscarded(facet, instance, signal) : before?.discarded;
      const { serviceId, version } = spec;
      const marker = { serviceId, version, ...(discarded && { discarded }) };
      status.setDiscardedLog(discarded);
      await writeMarker(paths.data, { ...marker, finished: false });
      await dropArchiveState(paths.data);
      if (mayRewind && previousRole === "primary" && facet.rewind !== undefined) {
        status.setState("preparing", "The data are prepared to follow the primary.");
        status.setReplication({ role: "replica", state: "starting" });
        try {
          await facet.rewind(instance, signal);
          await writeMarker(paths.data, { ...marker, finished: true });
          log.info("data rewound to the primary's", { service: spec.serviceId, ...discarded });
          return;
        } catch (error) {
          signal.throwIfAborted();
          log.warn("data not rewound, copied instead", { service: spec.serviceId, reason: (error as Error).message });
        }
      }
      status.setState("preparing", "The primary's data are copied.");
      await withProgress(instance, () => facet.copy(instance, signal));
      await writeMarker(paths.data, { ...marker, finished: true });
      log.info("data copied from the primary", { service: spec.serviceId });
    },
  };

  /**
   * Saves the log that only this machine has. A failure is logged and does not stop the member from following, since
   * its disk may be full.
   */
  async function saveDiscarded(facet: ReplicationFacet, instance: Instance, signal: AbortSignal) {
    const { spec, paths } = instance;
    const limitBytes = Math.max(minDiscardedBytes, Number(spec.storageBytes) / discardedShare);
    try {
      return await facet.saveDiscarded?.(instance, { directory: join(paths.data, discardedName), limitBytes }, signal);
    } catch (error) {
      signal.throwIfAborted();
      log.warn("discarded log not saved", { service: spec.serviceId, reason: (error as Error).message });
      return undefined;
    }
  }

  /** Reports the copied bytes while the work runs. */
  async function withProgress(instance: Instance, work: () => Promise<void>): Promise<void> {
    const finished = new AbortController();
    const { spec, paths } = instance;
    const reporting = (async () => {
      while (!finished.signal.aborted) {
        const space = await measureDisk(paths.data, Number(spec.storageBytes), finished.signal).catch(() => undefined);
        const copiedBytes = space?.usedBytes ?? 0;
        if (space !== undefined) status.setDiskSpace(space);
        status.setReplication({ role: "replica", state: "copying", copiedBytes });
        await sleep(reportIntervalMs, undefined, { signal: finished.signal }).catch(() => undefined);
      }
    })();
    try {
      await work();
    } finally {
      finished.abort();
      await reporting;
      status.setReplication({ role: "replica", state: "starting" });
    }
  }
}

/**
 * True if the data are a complete replica of this service. Data of a newer version must be copied again, since the
 * upgrade was rolled back. Where file formats differ between versions, so must older data, since the primary's were
 * upgraded.
 */
async function isFollower(driver: EngineDriver, instance: Instance): Promise<boolean> {
  const { spec } = instance;
  const marker = await readMarker(instance.paths.data);
  if (marker?.finished !== true || marker.serviceId !== spec.serviceId) return false;
  if (compareVersions(marker.version, spec.version) > 0) return false;
  if (await hasOtherVersion(driver, instance)) return false;
  return (await driver.replication?.dataRole(instance)) === "follower";
}

async function readMarker(data: string): Promise<MemberMarker | undefined> {
  const bytes = await readIfExists(join(data, markerName));
  return bytes === undefined ? undefined : markerFormat.parse(bytes.toString("utf8"));
}

function writeMarker(data: string, marker: MemberMarker): Promise<void> {
  return writeDurably(join(data, markerName), markerFormat.format(marker), 0o640);
}

const maxPolls = 25;
const pollIntervalMs = 200;

/** Adds the minimum values of parameters that the data require: an engine with less does not start. */
export async function withRequiredParameters(
  driver: EngineDriver,
  instance: Instance,
  signal: AbortSignal,
): Promise<Instance> {
  const atLeast = await driver.replication?.requiredParameters?.(instance, signal);
  return atLeast === undefined ? instance : { ...instance, minimumParameters: atLeast };
}

/** True if the data now require more of a parameter than the engine was started with. */
export function exceedsParameters({ minimumParameters = {} }: Instance, started: Instance): boolean {
  const previousRole = effectiveParameters(started);
  return Object.entries(minimumParameters).some(([name, least]) => Number(previousRole.get(name)) < least);
}

/**
 * Waits up to 5 s until the data require no more than the configured parameters. A value is lowered on the primary
 * first; a replica must replay that change before it restarts, or the old minimum would remain. Other values may never
 * be lowered, so the wait is limited.
 */
export async function untilParametersSuffice(
  driver: EngineDriver,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  if (roleOf(instance.spec) !== "replica") return;
  const configured = effectiveParameters(instance);
  for (let poll = 0; poll < maxPolls; poll += 1) {
    const { minimumParameters = {} } = await withRequiredParameters(driver, instance, signal);
    if (Object.entries(minimumParameters).every(([name, least]) => Number(configured.get(name)) >= least)) return;
    await sleep(pollIntervalMs, undefined, { signal });
  }
}
