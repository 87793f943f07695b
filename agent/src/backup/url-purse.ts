import type { AgentLink } from "./agent-link.ts";
import type { ObjectMethod, ObjectUseText, UrlGrant } from "./job.ts";

/** A signed way to one object, used by one method. */
export interface SignedUse {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly endpoint: UrlGrant["endpoint"];
}

/** Signed URLs, fetched in batches ahead of their use. */
export interface UrlPurse {
  take(method: ObjectMethod, key: string, signal: AbortSignal): Promise<SignedUse>;
  /**
   * Fetches URLs that are not held yet, or end soon, and returns at once: `take` waits for those under way, and asks
   * again for what did not come.
   */
  fetchAhead(method: ObjectMethod, keys: readonly string[], signal: AbortSignal): void;
  /** The store did not take it: another one is asked for next time. */
  drop(method: ObjectMethod, key: string): void;
}

interface Held extends SignedUse {
  readonly signedAtMs: number;
  readonly expiresAtMs: number;
}

const mostAtATime = 500;
/** What ends this soon is not begun with. */
const leastLeftMs = 120_000;

export function createUrlPurse(link: Pick<AgentLink, "mint">, now: () => number): UrlPurse {
  const held = new Map<string, Held>();
  const coming = new Map<string, Promise<void>>();
  const nameOf = (method: string, key: string) => `${method} ${key}`;

  async function fetchAll(uses: readonly ObjectUseText[], signal: AbortSignal): Promise<void> {
    const { urls, expiresAtMs, endpoint } = await link.mint(uses, signal);
    for (const [index, { method, key }] of uses.entries()) {
      const signed = urls[index];
      if (signed === undefined) throw new Error("fewer URLs came than were asked for");
      held.set(nameOf(method, key), { ...signed, endpoint, signedAtMs: now(), expiresAtMs });
    }
  }

  /** Half of its time is over, or all but a moment. */
  function isOld({ signedAtMs, expiresAtMs }: Held, ahead: boolean): boolean {
    const leftMs = expiresAtMs - now();
    return leftMs < leastLeftMs || (ahead && leftMs < (expiresAtMs - signedAtMs) / 2);
  }

  async function hold(uses: readonly ObjectUseText[], signal: AbortSignal, ahead: boolean): Promise<void> {
    const wanted = uses.filter(({ method, key }) => {
      const known = held.get(nameOf(method, key));
      return (known === undefined || isOld(known, ahead)) && !coming.has(nameOf(method, key));
    });
    const waits = new Set(uses.flatMap(({ method, key }) => coming.get(nameOf(method, key)) ?? []));
    for (let at = 0; at < wanted.length; at += mostAtATime) {
      const batch = wanted.slice(at, at + mostAtATime);
      const fetching = fetchAll(batch, signal).finally(() => {
        for (const { method, key } of batch) coming.delete(nameOf(method, key));
      });
      for (const { method, key } of batch) coming.set(nameOf(method, key), fetching);
      waits.add(fetching);
    }
    await Promise.all(waits);
  }

  return {
    fetchAhead(method, keys, signal) {
      const uses = keys.map((key) => ({ method, key }));
      hold(uses, signal, true).catch(() => undefined);
    },
    async take(method, key, signal) {
      for (;;) {
        const found = held.get(nameOf(method, key));
        if (found !== undefined && !isOld(found, false)) {
          // Hardly any is used again, and a large backup has many.
          held.delete(nameOf(method, key));
          return found;
        }
        await hold([{ method, key }], signal, false);
      }
    },
    drop: (method, key) => {
      held.delete(nameOf(method, key));
    },
  };
}
