import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Holds } from "../clock/holds.ts";
import type { ComputeProvider, MachineFacts } from "../compute/compute-provider.ts";
import type { Collection } from "../store/collection.ts";
import { root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import type { MachineObject } from "./machine.ts";
import { stopGraceMs } from "./machine-steps.ts";

/** A machine of the provider that no object owns, with what was done about it, or would be in a dry run. */
export interface Orphan {
  readonly machineId: string;
  readonly hasData: boolean;
  readonly action: "stopped" | "kept" | "destroyed";
  /** When it goes; undefined for one that is gone, and while a hold stands against that. */
  readonly keptUntil: number | undefined;
}

export interface OrphanSweep {
  /**
   * Looks through the provider's machines once. One without data is destroyed; one with data is stopped, and destroyed
   * seven days after it was first seen. While anything is held, nothing is touched.
   */
  sweep(options: { readonly dryRun: boolean }, signal: AbortSignal): Promise<Orphan[]>;
}

export interface OrphanSweepDeps {
  readonly provider: ComputeProvider;
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
  const { provider, machines, store, clock, log } = deps;

  /** Asks the store, not the memory: a machine whose object was not seen yet is no orphan. */
  async function isOwned(id: string, signal: AbortSignal): Promise<boolean> {
    return machines.get(id) !== undefined || (await machines.fresh(id, signal)) !== undefined;
  }

  async function firstSeen(id: string, signal: AbortSignal): Promise<number | undefined> {
    const value = await store.get(prefix + id, signal);
    return value === undefined ? undefined : (JSON.parse(value.value) as { since: number }).since;
  }

  async function remember(id: string, since: number): Promise<void> {
    const put = { key: prefix + id, value: JSON.stringify({ since }) };
    await store.commit({ conditions: [{ key: put.key, modRevision: 0n }], puts: [put], deletes: [] });
  }

  async function settle(facts: MachineFacts, dryRun: boolean, signal: AbortSignal): Promise<Orphan> {
    const { id, hasData } = facts;
    const since = await firstSeen(id, signal);
    const held = deps.holds.list().length > 0;
    const orphan = orphanOf(facts, since, held, clock.now());
    if (dryRun || held) return orphan;
    if (hasData && since === undefined) await remember(id, clock.now());
    if (orphan.action === "stopped") await provider.stop(id, stopGraceMs, signal);
    if (orphan.action === "destroyed") {
      await provider.destroy(id, signal);
      await store.commit({ conditions: [], puts: [], deletes: [prefix + id] }, signal);
    }
    if (orphan.action !== "kept") log.warn("orphan swept", { machine: id, hasData, action: orphan.action });
    return orphan;
  }

  /** A machine that got its object back is new to the sweep if it loses it again. */
  async function forgetOwned(listed: readonly MachineFacts[], signal: AbortSignal): Promise<void> {
    const present = new Set(listed.map(({ id }) => id));
    let after: string | undefined;
    for (;;) {
      const page = await store.list(prefix, { limit: 100, ...(after !== undefined && { after }) }, signal);
      for (const { key } of page.values) {
        const id = key.slice(prefix.length);
        if (present.has(id) && !(await isOwned(id, signal))) continue;
        await store.commit({ conditions: [], puts: [], deletes: [key] }, signal);
      }
      after = page.values.at(-1)?.key;
      if (!page.more || after === undefined) return;
    }
  }

  return {
    async sweep({ dryRun }, signal) {
      await deps.objectsReady;
      const listed = await provider.list(signal);
      if (!dryRun) await forgetOwned(listed, signal);
      const orphans: Orphan[] = [];
      for (const facts of listed) {
        if (!(await isOwned(facts.id, signal))) orphans.push(await settle(facts, dryRun, signal));
      }
      return orphans;
    },
  };
}

/** Pure: what is due for an orphan that was first seen at `since`. */
function orphanOf(facts: MachineFacts, since: number | undefined, held: boolean, now: number): Orphan {
  const { id: machineId, hasData } = facts;
  if (held) return { machineId, hasData, action: "kept", keptUntil: undefined };
  if (!hasData) return { machineId, hasData, action: "destroyed", keptUntil: undefined };
  const keptUntil = (since ?? now) + keptMs;
  if (now >= keptUntil) return { machineId, hasData, action: "destroyed", keptUntil: undefined };
  return { machineId, hasData, action: facts.state === "running" ? "stopped" : "kept", keptUntil };
}
