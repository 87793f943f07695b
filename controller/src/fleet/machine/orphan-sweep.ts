import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { AutomationPauses } from "#kernel/clock/automation-pauses.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { HostSurvey, HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { PageBounds } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import type { MachineObject } from "./machine.ts";
import { stopGraceMs } from "./machine-steps.ts";

/**
 * A machine without an object, or whose object names another host. `action` is the action of the sweep; for a dry run,
 * the action that a sweep would take.
 */
export interface Orphan {
  readonly machineId: string;
  readonly hostId: string;
  readonly hasData: boolean;
  readonly action: "stopped" | "kept" | "destroyed";
  /**
   * Time at which it is destroyed, in milliseconds since 1970; undefined if it is destroyed now, or deletion is paused.
   */
  readonly retainedUntil: number | undefined;
}

export interface OrphanSweep {
  /**
   * Lists the machines of every reachable host and handles the orphans. An orphan without data is destroyed; one with
   * data is stopped, and destroyed seven days after it was first seen. While deletions are paused nothing changes, and
   * unreachable hosts are skipped. `page` limits the sweep; `next` is the cursor of the next page, absent on the last.
   */
  sweep(
    options: { readonly dryRun: boolean; readonly page?: PageBounds },
    signal: AbortSignal,
  ): Promise<{ readonly orphans: Orphan[]; readonly next: string | undefined }>;
}

export interface OrphanSweepDeps {
  readonly provider: Pick<HostsProvider, "survey" | "on">;
  readonly machines: Collection<MachineObject>;
  readonly store: Store;
  /** Resolves when the cache has all objects. */
  readonly objectsReady: Promise<unknown>;
  /** Read right before each deletion. */
  readonly automationPauses: Pick<AutomationPauses, "list">;
  readonly clock: Clock;
  readonly log: Log;
}

const retentionMs = 7 * 86_400_000;
const prefix = `${root}/orphan/`;

export function createOrphanSweep(deps: OrphanSweepDeps): OrphanSweep {
  const { machines, store, clock, log } = deps;

  /**
   * True if the machine's object names this host. Reads the store as well: the cache may lack a new machine's object.
   */
  async function isOwned(id: string, hostId: string, signal: AbortSignal): Promise<boolean> {
    const isHere = (object: MachineObject | undefined) =>
      object !== undefined && (object.spec.hostId === null || object.spec.hostId === hostId);
    return isHere(machines.get(id)?.object) || isHere((await machines.getCurrent(id, signal))?.object);
  }

  async function sweepMachine(
    hostId: string,
    facts: MachineFacts,
    dryRun: boolean,
    signal: AbortSignal,
  ): Promise<Orphan> {
    const { id, hasData } = facts;
    const key = sightingKey(id, hostId);
    const seen = await store.get(key, signal);
    const since = seen && (JSON.parse(seen.value) as Sighting).since;
    const isPaused = deps.automationPauses.list("deletion").length > 0;
    const orphan = orphanOf(hostId, facts, since, isPaused, clock.now());
    if (dryRun || isPaused) return orphan;
    if (hasData && seen === undefined) {
      const put = { key, value: JSON.stringify({ since: clock.now() } satisfies Sighting) };
      await store.commit({ conditions: [{ key, modRevision: 0n }], puts: [put], deletes: [] });
    }
    const provider = deps.provider.on(hostId);
    if (orphan.action === "stopped") await provider.stop(id, stopGraceMs, signal);
    if (orphan.action === "destroyed") {
      await provider.destroy(id, signal);
      await store.commit({ conditions: [], puts: [], deletes: [key] }, signal);
    }
    const { action } = orphan;
    if (action !== "kept") log.warn("orphan swept", { machine: id, host: hostId, hasData, action });
    return orphan;
  }

  /** Deletes sightings of machines that have an object again, or no longer exist. */
  async function deleteSightings({ machines: listed, unresponsive }: HostSurvey, signal: AbortSignal): Promise<void> {
    const present = new Set(listed.map(({ hostId, facts }) => sightingKey(facts.id, hostId)));
    let after: string | undefined;
    for (;;) {
      const page = await store.list(prefix, { limit: 100, ...(after !== undefined && { after }) }, signal);
      for (const { key } of page.values) {
        const [id = "", hostId = ""] = key.slice(prefix.length).split("/");
        if (unresponsive.has(hostId)) continue;
        if (present.has(key) && !(await isOwned(id, hostId, signal))) continue;
        await store.commit({ conditions: [], puts: [], deletes: [key] }, signal);
      }
      after = page.values.at(-1)?.key;
      if (!page.more || after === undefined) return;
    }
  }

  return {
    async sweep({ dryRun, page = { after: undefined, limit: Infinity } }, signal) {
      await deps.objectsReady;
      const survey = await deps.provider.survey(signal);
      for (const [host, reason] of survey.unresponsive) log.warn("orphans of a host not swept", { host, reason });
      if (!dryRun) await deleteSightings(survey, signal);
      const orphans: Orphan[] = [];
      let last: string | undefined;
      for (const [sortKey, { hostId, facts }] of foundAfter(page.after, survey)) {
        if (await isOwned(facts.id, hostId, signal)) continue;
        if (orphans.length === page.limit) return { orphans, next: last };
        orphans.push(await sweepMachine(hostId, facts, dryRun, signal));
        last = sortKey;
      }
      return { orphans, next: undefined };
    },
  };
}

/** Machines after a page's cursor (`<machine id> <host id>`), in the order of these keys. */
function foundAfter(after: string | undefined, { machines }: HostSurvey) {
  return machines
    .map((found) => [`${found.facts.id} ${found.hostId}`, found] as const)
    .filter(([sortKey]) => after === undefined || sortKey > after)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Stored record of an orphan with data: the time at which it was first seen, in milliseconds since 1970. */
interface Sighting {
  readonly since: number;
}

/** Key of a sighting. A machine may exist on two hosts, with a separate retention of seven days on each. */
const sightingKey = (id: string, hostId: string) => `${prefix}${id}/${hostId}`;

/** The action for an orphan that was first seen at `since`. */
function orphanOf(
  hostId: string,
  { id: machineId, hasData, state }: MachineFacts,
  since: number | undefined,
  isPaused: boolean,
  now: number,
): Orphan {
  const orphan = { machineId, hostId, hasData };
  if (isPaused) return { ...orphan, action: "kept", retainedUntil: undefined };
  if (!hasData) return { ...orphan, action: "destroyed", retainedUntil: undefined };
  const retainedUntil = (since ?? now) + retentionMs;
  if (now >= retainedUntil) return { ...orphan, action: "destroyed", retainedUntil: undefined };
  return { ...orphan, action: state === "running" ? "stopped" : "kept", retainedUntil };
}
