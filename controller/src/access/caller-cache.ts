import type { PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";

/** Callers whose credentials were valid within the last second, by the exact Authorization header or session. */
export interface CallerCache {
  get(credentials: PresentedCredentials): Principal | undefined;
  /**
   * Call before a check begins: the returned function caches its result unless an object has changed since the call.
   */
  recorder(): RecordCaller;
}

/** Caches a successful check for a second, or until `endsAt` (null: no expiry) if that is earlier. */
export type RecordCaller = (credentials: PresentedCredentials, principal: Principal, endsAt: number | null) => void;

interface CachedCaller {
  readonly principal: Principal;
  readonly organization: string | undefined;
  readonly until: number;
}

const cacheMs = 1_000;
const cacheMax = 10_000;

/**
 * Every entry is dropped at each change of the objects that checks read, so a caller is never cached for longer than
 * this replica considers the credential valid. A hash is computed once a second per credential, not once per request.
 */
export function createCallerCache(
  sources: readonly Pick<Collection<unknown>, "subscribe">[],
  clock: Clock,
): CallerCache {
  let callers = new Map<string, CachedCaller>();
  for (const collection of sources) {
    collection.subscribe(() => {
      callers = new Map();
    });
  }
  return {
    get(credentials) {
      const { organization } = credentials;
      const cached = callers.get(cacheKeyOf(credentials));
      if (cached === undefined || cached.organization !== organization) return undefined;
      const remainingMs = cached.until - clock.now();
      // A clock that was set back must not extend the cache time.
      return remainingMs > 0 && remainingMs <= cacheMs ? cached.principal : undefined;
    },
    recorder() {
      const current = callers;
      return (credentials, principal, endsAt) => {
        const { organization } = credentials;
        if (current.size >= cacheMax) current.clear();
        const until = Math.min(clock.now() + cacheMs, endsAt ?? Number.POSITIVE_INFINITY);
        current.set(cacheKeyOf(credentials), { principal, organization, until });
      };
    },
  };
}

/** The key of a session's change includes its CSRF token, so that a request with another token is checked. */
function cacheKeyOf({ authorization, session }: PresentedCredentials): string {
  if (authorization !== undefined || session === undefined) return authorization ?? "";
  const { secret, csrfToken, isRead } = session;
  return isRead ? `session ${secret}` : `session ${secret} ${csrfToken ?? ""}`;
}
