import type { AgentLink } from "./agent-link.ts";
import type { ObjectMethod, ObjectUseJson, UrlGrant } from "./job.ts";

/** A presigned URL for one method and object. */
export interface PresignedUrl {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly endpoint: UrlGrant["endpoint"];
}

/** Presigned URLs, requested in batches ahead of their use. */
export interface PresignedUrlCache {
  take(method: ObjectMethod, key: string, signal: AbortSignal): Promise<PresignedUrl>;
  /**
   * Requests URLs that are not cached or expire soon, and returns before their responses. `take` waits for requests in
   * flight and repeats failed ones.
   */
  prefetch(method: ObjectMethod, keys: readonly string[], signal: AbortSignal): void;
  /** The store refused the URL: the next `take` requests another one. */
  drop(method: ObjectMethod, key: string): void;
}

interface CachedUrl extends PresignedUrl {
  readonly signedAtMs: number;
  readonly expiresAtMs: number;
}

const batchSize = 500;
/** A URL with less time than this remaining is not used. */
const minRemainingMs = 120_000;

export function createPresignedUrlCache(link: Pick<AgentLink, "mint">, now: () => number): PresignedUrlCache {
  const cache = new Map<string, CachedUrl>();
  const inFlight = new Map<string, Promise<void>>();
  const nameOf = (method: string, key: string) => `${method} ${key}`;

  async function fetchAll(uses: readonly ObjectUseJson[], signal: AbortSignal): Promise<void> {
    const { urls, expiresAtMs, endpoint } = await link.mint(uses, signal);
    for (const [index, { method, key }] of uses.entries()) {
      const signed = urls[index];
      if (signed === undefined) throw new Error("the controller signed fewer URLs than requested");
      cache.set(nameOf(method, key), { ...signed, endpoint, signedAtMs: now(), expiresAtMs });
    }
  }

  /** True if the URL expires soon or, for a prefetch, if half of its lifetime has passed. */
  function isStale({ signedAtMs, expiresAtMs }: CachedUrl, ahead: boolean): boolean {
    const remainingMs = expiresAtMs - now();
    return remainingMs < minRemainingMs || (ahead && remainingMs < (expiresAtMs - signedAtMs) / 2);
  }

  async function ensure(uses: readonly ObjectUseJson[], signal: AbortSignal, ahead: boolean): Promise<void> {
    const missing = uses.filter(({ method, key }) => {
      const cached = cache.get(nameOf(method, key));
      return (cached === undefined || isStale(cached, ahead)) && !inFlight.has(nameOf(method, key));
    });
    const waits = new Set(uses.flatMap(({ method, key }) => inFlight.get(nameOf(method, key)) ?? []));
    for (let at = 0; at < missing.length; at += batchSize) {
      const batch = missing.slice(at, at + batchSize);
      const fetching = fetchAll(batch, signal).finally(() => {
        for (const { method, key } of batch) inFlight.delete(nameOf(method, key));
      });
      for (const { method, key } of batch) inFlight.set(nameOf(method, key), fetching);
      waits.add(fetching);
    }
    await Promise.all(waits);
  }

  return {
    prefetch(method, keys, signal) {
      const uses = keys.map((key) => ({ method, key }));
      ensure(uses, signal, true).catch(() => undefined);
    },
    async take(method, key, signal) {
      for (;;) {
        const found = cache.get(nameOf(method, key));
        if (found !== undefined && !isStale(found, false)) {
          // Few URLs are used twice, and a large backup has many.
          cache.delete(nameOf(method, key));
          return found;
        }
        await ensure([{ method, key }], signal, false);
      }
    },
    drop: (method, key) => {
      cache.delete(nameOf(method, key));
    },
  };
}
