import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";

/**
 * Leases of the registries that have their images in one bucket: many may use it, or one may sweep it. Each registry
 * writes its own lease and then reads those of the others, so of two that begin concurrently at least one sees the
 * other. Each check of a sweep and each removal of a dead lease has this order too: a lease that changes after the
 * removal's read is then one whose registry reads the lease of the registry that removed it. A sweep ends for a use,
 * which waits until it has ended. A lease lives while its content changes: no clock of another host is compared.
 */
export interface BucketLeases {
  /**
   * Resolves once no registry sweeps the bucket; none begins until `leave`, while this registry renews its lease. It
   * is called again for each request: a lease without a renewal for half of `deadUseMs` is entered again.
   */
  enter(): Promise<void>;
  /** Ends the use of this registry, in whose time no push may be in progress any more. */
  leave(): Promise<void>;
  /**
   * Runs the work unless another registry uses or sweeps the bucket: then it resolves with false. The signal aborts if
   * another registry wants to use the bucket. Nothing may be deleted unless `maySweep` is true at that time.
   */
  sweep(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean>;
  /** True from the begin of a sweep of this registry to its end. */
  isSweeping(): boolean;
  /** True while the sweep of this registry certainly is the only work on the bucket. */
  maySweep(): boolean;
  close(): void;
}

export interface BucketLeasesDeps {
  readonly objects: Pick<ObjectStore, "put" | "get" | "list" | "delete">;
  /** Id of this process, which no other has. */
  readonly id: string;
  /** Milliseconds of this host's clock. */
  readonly now: () => number;
  /** Resolves after a time in milliseconds, or once the signal aborts. */
  readonly wait?: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Pick<Log, "warn" | "error">;
  readonly times?: LeaseTimes;
}

export interface LeaseTimes {
  /** Interval at which a use renews its lease. */
  readonly renewUseMs: number;
  /** Time without a change after which a use counts as ended: its registry was killed. */
  readonly deadUseMs: number;
  /** Interval at which a sweep checks the leases of uses and renews its own. */
  readonly checkMs: number;
  /** Time after the last check for which a sweep deletes images. */
  readonly validMs: number;
  /** Time without a change after which a sweep counts as ended; longer than `validMs`. */
  readonly deadSweepMs: number;
}

const usualTimes: LeaseTimes = {
  renewUseMs: 20_000,
  deadUseMs: 10 * 60_000,
  checkMs: 1_000,
  validMs: 5_000,
  deadSweepMs: 30_000,
};
/** Largest number of leases of one kind, which are those of processes. */
const leasesMax = 1_000;
const [uses, sweeps] = ["leases/use/", "leases/sweep/"] as const;

const timer: Required<BucketLeasesDeps>["wait"] = async (ms, signal) => {
  await sleep(ms, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(() => undefined);
};

export function createBucketLeases(deps: BucketLeasesDeps): BucketLeases {
  const { objects, id, now, wait = timer, log, times = usualTimes } = deps;
  /** Contents of others' leases, with the time since when each is the same. */
  const seen = new Map<string, { readonly content: string; readonly since: number }>();
  let renewals = 0;
  /** Ends the renewals of the use. */
  let using: AbortController | undefined;
  /** One write of the use at a time: a later one would end before an earlier one, whose lease then outlives `leave`. */
  let renewing: Promise<void> | undefined;
  let entering: Promise<void> | undefined;
  /** Begin of the last renewal of the use that succeeded; undefined before the use is entered. */
  let renewedAt: number | undefined;
  let isEntered = false;
  let sweeping: Sweep | undefined;

  async function write(prefix: string): Promise<void> {
    renewals += 1;
    const content = Buffer.from(`${id} ${renewals}`);
    await objects.put(
      `${prefix}${id}`,
      (async function* () {
        yield content;
      })(),
    );
  }

  async function contentOf(key: string): Promise<string | undefined> {
    const parts: Buffer[] = [];
    try {
      const body = await objects.get(key);
      if (body === undefined) return undefined;
      for await (const part of body) parts.push(part);
    } catch (error) {
      // It was deleted while it was read.
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    }
    return Buffer.concat(parts).toString();
  }

  /** Others' leases, by whether they live. One that is deleted after the list has ended. */
  async function leasesOf(prefix: string, deadMs: number): Promise<{ live: string[]; dead: string[] }> {
    const { objects: found } = await objects.list(prefix, { limit: leasesMax });
    const keys = found.map(({ key }) => key).filter((key) => key !== `${prefix}${id}`);
    for (const key of seen.keys()) if (key.startsWith(prefix) && !keys.includes(key)) seen.delete(key);
    const [live, dead]: [string[], string[]] = [[], []];
    for (const key of keys) {
      const content = await contentOf(key);
      if (content === undefined) continue;
      const before = seen.get(key);
      if (before?.content !== content) seen.set(key, { content, since: now() });
      const isDead = before?.content === content && now() - before.since >= deadMs;
      (isDead ? dead : live).push(key);
    }
    return { live, dead };
  }

  /** True if no other's lease lives. Deletes the dead ones, so it is only called after the write of an own lease. */
  async function areAllDead(prefix: string, deadMs: number): Promise<boolean> {
    const { live, dead } = await leasesOf(prefix, deadMs);
    for (const key of dead) {
      log.warn("lease of a registry that has ended deleted", { key });
      await objects.delete(key);
    }
    return live.length === 0;
  }

  function renewUse(): Promise<void> {
    const startedAt = now();
    renewing ??= write(uses)
      .then(() => {
        renewedAt = startedAt;
      })
      .finally(() => {
        renewing = undefined;
      });
    return renewing;
  }

  async function enter(): Promise<void> {
    // Others delete a lease after twice this time: the use of a registry without its store may have ended for them.
    if (isEntered && renewedAt !== undefined && now() - renewedAt < times.deadUseMs / 2) return;
    isEntered = false;
    // One in progress may have been stored long ago.
    await renewing?.catch(() => undefined);
    await renewUse();
    if (using === undefined) {
      using = new AbortController();
      inBackground(log, "renewals of a lease", renewUses(using.signal));
    }
    while (!(await areAllDead(sweeps, times.deadSweepMs))) await wait(times.checkMs / 2);
    isEntered = true;
  }

  async function renewUses(ended: AbortSignal): Promise<void> {
    for (;;) {
      await wait(times.renewUseMs, ended);
      if (ended.aborted) return;
      await renewUse().catch((error: unknown) => log.warn("lease not renewed", { error }));
    }
  }

  function endRenewals(): void {
    using?.abort();
    using = undefined;
  }

  /**
   * True if this registry still has the lease of the sweep, which is renewed, and then no other uses or sweeps the
   * bucket. A check that ends after its sweep permits nothing.
   */
  async function isAlone(sweep: Sweep): Promise<boolean> {
    const startedAt = now();
    // A deleted lease is not written again: a use counts this sweep as ended.
    if ((await contentOf(`${sweeps}${id}`)) === undefined || sweep.isOver) return false;
    await write(sweeps);
    if (!(await areAllDead(sweeps, times.deadSweepMs))) return false;
    if (!(await areAllDead(uses, times.deadUseMs))) return false;
    sweep.checkedAt = startedAt;
    return true;
  }

  return {
    enter() {
      entering ??= enter().finally(() => {
        entering = undefined;
      });
      return entering;
    },
    async leave() {
      // An entry in progress would write its lease after the end of the use.
      await entering?.catch(() => undefined);
      endRenewals();
      isEntered = false;
      await renewing?.catch(() => undefined);
      await objects.delete(`${uses}${id}`);
    },
    async sweep(work, signal) {
      if (sweeping !== undefined) return false;
      const own: Sweep = { checkedAt: undefined, isOver: false };
      sweeping = own;
      const lost = new AbortController();
      const ended = new AbortController();
      const watch = async () => {
        while (!ended.signal.aborted) {
          await wait(times.checkMs, ended.signal);
          if (ended.signal.aborted) return;
          if (await isAlone(own).catch(() => false)) continue;
          own.isOver = true;
          lost.abort();
          return;
        }
      };
      let watching: Promise<void> | undefined;
      let hasLease = false;
      try {
        // A sweep in progress does not see the lease of one that does not begin.
        if ((await leasesOf(sweeps, times.deadSweepMs)).live.length > 0) return false;
        if ((await leasesOf(uses, times.deadUseMs)).live.length > 0) return false;
        hasLease = true;
        await write(sweeps);
        if (!(await isAlone(own))) return false;
        watching = watch();
        await work(AbortSignal.any([signal, lost.signal]));
        return true;
      } catch (error) {
        if (!lost.signal.aborted) throw error;
        log.warn("sweep of images ended for another registry", { error });
        return false;
      } finally {
        own.isOver = true;
        ended.abort();
        // A check in progress writes the lease.
        await watching;
        try {
          if (hasLease) await objects.delete(`${sweeps}${id}`);
        } finally {
          sweeping = undefined;
        }
      }
    },
    isSweeping: () => sweeping !== undefined,
    maySweep: () => sweeping?.checkedAt !== undefined && !sweeping.isOver && now() - sweeping.checkedAt < times.validMs,
    close: endRenewals,
  };
}

interface Sweep {
  /** Begin of the last check that found no other lease. */
  checkedAt: number | undefined;
  /** True from the end of its work, or from the first check that found another lease or failed. */
  isOver: boolean;
}
