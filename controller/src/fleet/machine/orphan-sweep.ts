import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Holds } from "#kernel/clock/holds.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { HostSurvey, HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { PageBounds } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import type { MachineObject } from "./machine.ts";
import { stopGraceMs } from "./machine-steps.ts";

/**
 * A machine that no object owns, or whose object is on another host, with what was done about it, or would be in a dry
 * run.
 */
export interface Orphan {
  readonly machineId: string;
  readonly hostId: string;
  readonly hasData: boolean;
  readonly action: "stopped" | "kept" | "destroyed";
  /** When it goes; undefined for one that is gone, and while a hold stands against that. */
  readonly keptUntil: number | undefined;
}

export interface OrphanSweep {
  /**
   * Looks through the machines of every host that answers once. One without data is destroyed; one with data is stopped, and
   * destroyed seven days after it was first seen. While anything is held, nothing is touched; nor is what is on, or known of,
   * a host that does not answer. With a page, only the orphans of that page, which has `next` unless it is the last.
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
  /** Resolves when the memory has all objects. */
  readonly objectsReady: Promise<unknown>;
  /** Asked right before each deletion. */
  readonly holds: Pick<Holds, "list">;
  readonly clock: Clock;
  readonly log: Log;
}

const keptMs = 7 * 86_400_000;
const prefix = `${root}/orphan/`;

export function createOrphanSweep(deps: OrphanSweepDeps): OrphanSweep {
  const { machines, store, clock, log } = deps;

  /** Asks the store, not the memory: a machine whose object was not seen yet is no orphan. */
  async function isOwned(id: string, hostId: string, signal: AbortSignal): Promise<boolean> {
    const isHere = (object: MachineObject | undefined) =>
      object !== undefined && (object.spec.hostId === null || object.spec.hostId === hostId);
    return isHere(machines.get(id)?.object) || isHere((await machines.fresh(id, signal))?.object);
  }

  async function settle(hostId: string, facts: MachineFacts, dryRun: boolean, signal: AbortSignal): Promise<Orphan> {
    const { id, hasData } = facts;
    const key = sightingKey(id, hostId);
    const seen = await store.get(key, signal);
    const since = seen && (JSON.parse(seen.value) as Sighting).since;
    const held = deps.holds.list("deletion").length > 0;
    const orphan = orphanOf(hostId, facts, since, held, clock.now());
    if (dryRun || held) return orphan;
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

  /** A machine that got its object back is new to the sweep if it loses it again. */
  async function forgetOwned({ machines: listed, silent }: HostSurvey, signal: AbortSignal): Promise<void> {
    const present = new Set(listed.map(({ hostId, facts }) => sightingKey(facts.id, hostId)));
    let after: string | undefined;
    for (;;) {
      const page = await store.list(prefix, { limit: 100, ...(after !== undefined && { after }) }, signal);
      for (const { key } of page.values) {
        const [id = "", hostId = ""] = key.slice(prefix.length).split("/");
        if (silent.has(hostId)) continue;
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
      for (const [host, reason] of survey.silent) log.warn("machines of a host not swept", { host, reason });
      if (!dryRun) await forgetOwned(survey, signal);
      const orphans: Orphan[] = [];
      let last: string | undefined;
      for (const [place, { hostId, facts }] of placesBehind(page.after, survey)) {
        if (await isOwned(facts.id, hostId, signal)) continue;
        if (orphans.length === page.limit) return { orphans, next: last };
        orphans.push(await settle(hostId, facts, dryRun, signal));
        last = place;
      }
      return { orphans, next: undefined };
    },
  };
}

/** What was found, by machine and host: the same order in the next sweep. */
function placesBehind(after: string | undefined, { machines }: HostSurvey) {
  return machines
    .map((found) => [`${found.facts.id} ${found.hostId}`, found] as const)
    .filter(([place]) => after === undefined || place > after)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** What is remembered of an orphan with data. */
interface Sighting {
  readonly since: number;
}

/** A machine may be left on two hosts, and each has its own seven days. */
const sightingKey = (id: string, hostId: string) => `${prefix}${id}/${hostId}`;

/** Pure: what is due for an orphan that was first seen at `since`. */
function orphanOf(
  hostId: string,
  { id: machineId, hasData, state }: MachineFacts,
  since: number | undefined,
  held: boolean,
  now: number,
): Orphan {
  const orphan = { machineId, hostId, hasData };
  if (held) return { ...orphan, action: "kept", keptUntil: undefined };
  if (!hasData) return { ...orphan, action: "destroyed", keptUntil: undefined };
  const keptUntil = (since ?? now) + keptMs;
  if (now >= keptUntil) return { ...orphan, action: "destroyed", keptUntil: undefined };
  return { ...orphan, action: state === "running" ? "stopped" : "kept", keptUntil };
}
