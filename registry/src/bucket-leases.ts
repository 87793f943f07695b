import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";

/**
 * Leases of the registries that have their images in one bucket: many may use it, or one may sweep it. Each registry
 * writes its own lease and then reads those of the others, so of two that begin concurrently at least one sees the
 * other. A sweep ends for a use, which waits until it has ended. A lease lives while its content changes: no clock of
 * another host is compared.
 */
export interface BucketLeases {
  /** Resolves once no registry sweeps the bucket; none begins until `leave`. */
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
  readonly log: Pick<Log, "warn">;
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

export function createBucketLeases({ objects, id, now, log, times = usualTimes }: BucketLeasesDeps): BucketLeases {
  /** Contents of others' leases, with the time since when each is the same. */
  const seen = new Map<string, { readonly content: string; readonly since: number }>();
  let renewals = 0;
  let using: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;
  let entering: Promise<void> | undefined;
  let isEntered = false;
  /** Time of the last check that found no other lease; undefined while this registry does not sweep. */
  let checkedAt: number | undefined;
  let isSweeping = false;

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

  /** Keys of others' leases that live. Those that have ended are deleted. */
  async function liveOf(prefix: string, deadMs: number): Promise<string[]> {
    const { objects: found } = await objects.list(prefix, { limit: leasesMax });
    const keys = found.map(({ key }) => key).filter((key) => key !== `${prefix}${id}`);
    for (const key of seen.keys()) if (key.startsWith(prefix) && !keys.includes(key)) seen.delete(key);
    const live: string[] = [];
    for (const key of keys) {
      const content = await contentOf(key);
      if (content === undefined) continue;
      const before = seen.get(key);
      if (before?.content !== content) seen.set(key, { content, since: now() });
      else if (now() - before.since >= deadMs) {
        log.warn("lease of a registry that has ended deleted", { key });
        await objects.delete(key);
        continue;
      }
      live.push(key);
    }
    return live;
  }

  async function enter(): Promise<void> {
    if (isEntered) return;
    await write(uses);
    using ??= setInterval(renew, times.renewUseMs).unref();
    while ((await liveOf(sweeps, times.deadSweepMs)).length > 0) await sleep(times.checkMs / 2);
    isEntered = true;
  }

  function renew(): void {
    renewing = write(uses).catch((error: unknown) => log.warn("lease not renewed", { error }));
  }

  const isUsed = async () =>
    (await liveOf(sweeps, times.deadSweepMs)).length + (await liveOf(uses, times.deadUseMs)).length > 0;

  /** True if this registry still has its lease, and no other uses or sweeps the bucket. Renews the lease. */
  async function isAlone(): Promise<boolean> {
    const startedAt = now();
    // A deleted lease is not written again: a use counts this sweep as ended.
    if ((await contentOf(`${sweeps}${id}`)) === undefined) return false;
    if (await isUsed()) return false;
    await write(sweeps);
    checkedAt = startedAt;
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
      clearInterval(using);
      using = undefined;
      isEntered = false;
      await renewing;
      await objects.delete(`${uses}${id}`);
    },
    async sweep(work, signal) {
      // A sweep in progress does not see the lease of one that does not begin.
      if (await isUsed()) return false;
      const lost = new AbortController();
      const ended = new AbortController();
      const watch = async () => {
        while (!ended.signal.aborted) {
          await sleep(times.checkMs, undefined, { signal: ended.signal }).catch(() => undefined);
          if (ended.signal.aborted) return;
          if (await isAlone().catch(() => false)) continue;
          checkedAt = undefined;
          lost.abort();
          return;
        }
      };
      let watching: Promise<void> | undefined;
      try {
        isSweeping = true;
        await write(sweeps);
        if (!(await isAlone())) return false;
        watching = watch();
        await work(AbortSignal.any([signal, lost.signal]));
        return true;
      } catch (error) {
        if (!lost.signal.aborted) throw error;
        log.warn("sweep of images ended for another registry", { error });
        return false;
      } finally {
        ended.abort();
        checkedAt = undefined;
        await watching;
        isSweeping = false;
        await objects.delete(`${sweeps}${id}`);
      }
    },
    isSweeping: () => isSweeping,
    maySweep: () => checkedAt !== undefined && now() - checkedAt < times.validMs,
    close() {
      clearInterval(using);
      using = undefined;
    },
  };
}
