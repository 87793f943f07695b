import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import { hostOfMachine, type MachineObject } from "../machine/machine.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, type HostStatus } from "./host.ts";
import { newestSince } from "./host-images.ts";
import { type HostEvent, hostLifecycle } from "./host-lifecycle.ts";
import type { HostLinks } from "./host-links.ts";

export interface HostWorkDeps {
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly links: HostLinks;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
  /** Interval of polls; default: 4 s. */
  readonly pollIntervalMs?: number;
}

const pollIntervalMs = 4_000;
const retryDelayMs = 1_000;
const deleteRetryMs = 5_000;
const responseTimeoutMs = 3_000;
/** Time without a response after which a host is unreachable. Users see its machines as unreachable within 15 s. */
const silenceTimeoutMs = 4_000;
/** Change of free memory or disk, as a fraction of the total, below which nothing is written. */
const materialShare = 0.02;

/** Polls each host and writes its state, facts and images. Key: host id. */
export function createHostWork(deps: HostWorkDeps): ControlLoop {
  const { hosts, links, clock } = deps;
  /**
   * Monotonic time of the first failed poll since the last response. In memory: a restarted controller begins to wait
   * again.
   */
  const silentSince = new Map<string, number>();

  return {
    reconciler: {
      name: "host",
      async reconcile(id, signal) {
        const host = hosts.get(id)?.object;
        if (host === undefined) {
          silentSince.delete(id);
          return settled;
        }
        if (host.spec.destroyedAt !== null) {
          await writeHostStatus(
            id,
            "destroyed",
            () => ({ reason: "An operator declared the host destroyed." }),
            deps,
            signal,
          );
          return (await deleteIfEmpty(id, deps, signal))
            ? settled
            : again(deleteRetryMs, "machines of a destroyed host");
        }
        const intervalMs = deps.pollIntervalMs ?? pollIntervalMs;
        try {
          const report = await query(links, id, signal);
          silentSince.delete(id);
          await writeHostStatus(
            id,
            "responded",
            (before) => statusAfterReport(before, report, clock.now()),
            deps,
            signal,
          );
          return again(intervalMs, "poll");
        } catch (error) {
          if (signal.aborted) throw error;
          const now = clock.monotonicMs();
          const since = silentSince.get(id) ?? now;
          silentSince.set(id, since);
          if (now - since < silenceTimeoutMs) return again(Math.min(retryDelayMs, intervalMs), "no response");
          const reason = error instanceof Error ? error.message : String(error);
          await writeHostStatus(id, "fellSilent", () => ({ reason }), deps, signal);
          return again(intervalMs, reason);
        }
      },
    },
    *keys() {
      for (const { object } of hosts.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      // Status writes of this reconciler must not trigger a poll: a host is polled at its interval, or when its link or
      // spec changed.
      const seen = new Map<string, number>();
      const changed = (id: string) => {
        const generation = hosts.get(id)?.object.metadata.generation;
        if (seen.get(id) === generation) return;
        if (generation === undefined) seen.delete(id);
        else seen.set(id, generation);
        onChange(id);
      };
      const watches = [hosts.subscribe(changed), links.subscribe(onChange)];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    concurrency: 32,
  };
}

/** Deletes the object of a destroyed host once no machine object refers to it. True if it is deleted. */
async function deleteIfEmpty(id: string, { hosts, machines, begin, log }: HostWorkDeps, signal: AbortSignal) {
  const host = await hosts.getCurrent(id, signal);
  if (host === undefined) return true;
  await machines.untilRevision(host.modRevision, 5_000);
  if (machines.by(hostOfMachine, id).length > 0) return false;
  const unit = begin();
  unit.remove(hostKind, host);
  await unit.commit(signal);
  log.info("host deleted", { host: id });
  return true;
}

interface HostReport {
  readonly facts: HostFacts;
  readonly images: readonly ImageFacts[];
}

async function query(links: HostLinks, id: string, signal: AbortSignal): Promise<HostReport> {
  const link = links.all().get(id);
  if (link === undefined) throw new Error("The controller has no connection to the host.");
  const within = AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]);
  const [facts, images] = await Promise.all([link.facts(within), link.images(within)]);
  return { facts, images };
}

/** The status after a report. Facts with immaterial changes remain as stored, so that they notify no watcher. */
export function statusAfterReport(before: HostStatus, { facts, images }: HostReport, now: number): Partial<HostStatus> {
  const isNew = before.facts === null || isMaterial(before.facts, facts);
  const sameImages = JSON.stringify(before.images) === JSON.stringify(images);
  return {
    reason: "",
    ...(isNew && { facts }),
    ...(!sameImages && { images, imageSince: newestSince(before, images, now) }),
  };
}

function isMaterial(before: HostFacts, after: HostFacts): boolean {
  if (withoutFreeSpace(before) !== withoutFreeSpace(after)) return true;
  const hasChanged = (from: number, to: number, total: number) => Math.abs(to - from) > total * materialShare;
  return (
    hasChanged(before.memoryFreeBytes, after.memoryFreeBytes, after.memoryTotalBytes) ||
    hasChanged(before.diskFreeBytes, after.diskFreeBytes, after.diskTotalBytes) ||
    after.tiers.some(({ freeBytes, totalBytes, roots }, index) => {
      const previous = before.tiers[index];
      if (hasChanged(previous?.freeBytes ?? 0, freeBytes, totalBytes)) return true;
      return roots !== undefined && hasChanged(previous?.roots?.freeBytes ?? 0, roots.freeBytes, roots.totalBytes);
    })
  );
}

/** The facts without free memory and disk, as JSON. */
function withoutFreeSpace(facts: HostFacts): string {
  const tiers = facts.tiers.map(({ roots, ...tier }) => ({
    ...tier,
    freeBytes: 0,
    ...(roots !== undefined && { roots: { ...roots, freeBytes: 0 } }),
  }));
  return JSON.stringify({ ...facts, tiers, memoryFreeBytes: 0, diskFreeBytes: 0 });
}

/** Applies the event and the change to the stored status by compare-and-set. Writes nothing if nothing changes. */
async function writeHostStatus(
  id: string,
  event: HostEvent,
  change: (before: HostStatus) => Partial<HostStatus>,
  { hosts, begin, clock, log }: HostWorkDeps,
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const before = await hosts.getCurrent(id, signal);
    if (before === undefined) return;
    const { status } = before.object;
    const row = next(hostLifecycle, status.state, event);
    const stateChange = row === undefined ? {} : { state: row[2], since: clock.now() };
    // A host that never connected remains in state joining.
    const changed = row === undefined && event === "fellSilent" ? {} : change(status);
    const after: HostStatus = { ...status, ...changed, ...stateChange };
    if (JSON.stringify(after) === JSON.stringify(status)) return;
    const unit = begin();
    unit.update(hostKind, before, { ...before.object, status: after });
    await unit.commit(signal);
    if (row === undefined) return;
    const transition = { host: id, from: row[0], event: row[1], to: row[2] };
    if (row[3] === "warn") log.warn("host changed", { ...transition, reason: after.reason });
    else log.info("host changed", transition);
  });
}
