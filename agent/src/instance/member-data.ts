import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import type { Log } from "@holdfast/common/log.ts";
import { dropArchiveState } from "../backup/archive-state.ts";
import type { EngineDriver, Instance } from "../engines/engine-driver.ts";
import { roleOf } from "../engines/members.ts";
import type { DiscardedLog, ReplicationFacet } from "../engines/replication-facet.ts";
import { measureDisk } from "../os/disk-space.ts";
import { isOfOtherVersion } from "./data-version.ts";
import type { InstanceStatus } from "./instance-status.ts";

/** Whose data a member has, where they came from another member. It is on the data disk, beside the data. */
interface MemberMarker {
  readonly serviceId: string;
  /** False: what is there is fit for nothing but to be copied anew. */
  readonly finished: boolean;
  /** What the data of before had that the primary's had not. */
  readonly discarded?: DiscardedLog;
  /** Of the engine that had the data last as a follower's; absent in those of older agents. */
  readonly version?: string;
}

/** Has a member's data be what its role asks for, before its engine starts. */
export interface MemberData {
  /** Must the engine that runs end first, because its data are to become a follower's? */
  mustStop(driver: EngineDriver, instance: Instance): Promise<boolean>;
  /**
   * Resolves when a replica's data follow the primary: copied, or rewound where they were a primary's. `isNew`: nothing
   * ever ran on the data that are there. No engine may run. Throws for a primary without data of the service, or with a
   * copy that did not end.
   */
  ensure(driver: EngineDriver, instance: Instance, options: { isNew: boolean }, signal: AbortSignal): Promise<void>;
}

export interface MemberDataDeps {
  readonly status: Pick<InstanceStatus, "become" | "follows" | "measured" | "discarded">;
  readonly log: Log;
}

const markerName = "member.json";
const discardedName = "discarded";
/** Of the disk, for what only this machine has, and at least so much. */
const discardedShare = 20;
const leastDiscardedBytes = 64 << 20;
const measureEveryMs = 2_000;

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
      if (facet === undefined) throw new Error(`This machine's agent knows no replication of ${spec.engine}.`);
      if (roleOf(spec) !== "replica") {
        const marker = await readMarker(paths.data);
        if (marker?.finished === false)
          throw new Error("The data is a copy that did not end: another member has to be the primary.");
        // A service has more than one member only after its first has data: these are nobody's, and all would follow
        // them.
        const hasNone = (isNew && marker === undefined) || (await facet.dataOf(instance)) === "absent";
        if (hasNone && spec.source === undefined)
          throw new Error("This machine has none of the service's data: another member has to be the primary.");
        return;
      }
      if (await isFollower(driver, instance)) {
        // Before the engine may write what an older version does not read.
        const own = await readMarker(paths.data);
        if (own !== undefined && own.version !== spec.version)
          await writeMarker(paths.data, { ...own, version: spec.version });
        status.discarded(own?.discarded);
        return;
      }
      const before = await readMarker(paths.data);
      const mayRewind = !isNew && before?.finished !== false && !(await isOfOtherVersion(driver, instance));
      const had = await facet.dataOf(instance);
      const discarded = mayRewind && had === "primary" ? await keep(facet, instance, signal) : before?.discarded;
      const { serviceId, version } = spec;
      const marker = { serviceId, version, ...(discarded && { discarded }) };
      status.discarded(discarded);
      await writeMarker(paths.data, { ...marker, finished: false });
      await dropArchiveState(paths.data);
      if (mayRewind && had === "primary") {
        status.become("preparing", "Its data is made to follow the primary.");
        status.follows({ role: "replica", state: "starting" });
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
      status.become("preparing", "The primary's data is copied.");
      await measured(instance, () => facet.copy(instance, signal));
      await writeMarker(paths.data, { ...marker, finished: true });
      log.info("data copied from the primary", { service: spec.serviceId });
    },
  };

  /** What could not be kept is told all the same: a machine whose disk is full follows again. */
  async function keep(facet: ReplicationFacet, instance: Instance, signal: AbortSignal) {
    const { spec, paths } = instance;
    const limitBytes = Math.max(leastDiscardedBytes, Number(spec.storageBytes) / discardedShare);
    try {
      return await facet.keepDiscarded?.(instance, { directory: join(paths.data, discardedName), limitBytes }, signal);
    } catch (error) {
      signal.throwIfAborted();
      log.warn("discarded log not kept", { service: spec.serviceId, reason: (error as Error).message });
      return undefined;
    }
  }

  /** Tells while the work goes on how much has come. */
  async function measured(instance: Instance, work: () => Promise<void>): Promise<void> {
    const over = new AbortController();
    const { spec, paths } = instance;
    const telling = (async () => {
      while (!over.signal.aborted) {
        const space = await measureDisk(paths.data, Number(spec.storageBytes), over.signal).catch(() => undefined);
        const copiedBytes = space?.usedBytes ?? 0;
        if (space !== undefined) status.measured(space);
        status.follows({ role: "replica", state: "copying", copiedBytes });
        await sleep(measureEveryMs, undefined, { signal: over.signal }).catch(() => undefined);
      }
    })();
    try {
      await work();
    } finally {
      over.abort();
      await telling;
      status.follows({ role: "replica", state: "starting" });
    }
  }
}

/**
 * A follower's data of a newer version are fit for nothing but to be copied anew: its upgrade was rolled back. Where
 * files differ between versions, so are those of an older one: its primary's were upgraded, and are others from then
 * on.
 */
async function isFollower(driver: EngineDriver, instance: Instance): Promise<boolean> {
  const { spec } = instance;
  const marker = await readMarker(instance.paths.data);
  if (marker?.finished !== true || marker.serviceId !== spec.serviceId) return false;
  if (compareVersions(marker.version ?? spec.version, spec.version) > 0) return false;
  if (await isOfOtherVersion(driver, instance)) return false;
  return (await driver.replication?.dataOf(instance)) === "follower";
}

async function readMarker(data: string): Promise<MemberMarker | undefined> {
  const bytes = await readIfThere(join(data, markerName));
  return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as MemberMarker);
}

function writeMarker(data: string, marker: MemberMarker): Promise<void> {
  return writeDurably(join(data, markerName), JSON.stringify(marker), 0o640);
}
