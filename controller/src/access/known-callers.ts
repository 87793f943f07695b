import type { PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "../store/collection.ts";

/** Callers whose credentials were found good a moment ago, by the exact header that they sent. */
export interface KnownCallers {
  get(credentials: PresentedCredentials): Principal | undefined;
  /** To be taken before a check begins: what it keeps counts for nothing once something has changed. */
  keeper(): Keep;
}

/** Keeps the outcome of a check for a second, or until `endsAt` (null: never) when that comes first. */
export type Keep = (credentials: PresentedCredentials, principal: Principal, endsAt: number | null) => void;

interface Known {
  readonly principal: Principal;
  readonly organization: string | undefined;
  readonly until: number;
}

const keptMs = 1_000;
const keptMax = 10_000;

/**
 * Everything is forgotten at each change of what the checks are made from: a caller is never known for longer than this
 * replica believes in the credential, and a hash is paid once a second for each credential and not for each request.
 */
export function createKnownCallers(
  madeFrom: readonly Pick<Collection<unknown>, "subscribe">[],
  clock: Clock,
): KnownCallers {
  let callers = new Map<string, Known>();
  for (const collection of madeFrom) {
    collection.subscribe(() => {
      callers = new Map();
    });
  }
  return {
    get({ authorization = "", organization }) {
      const known = callers.get(authorization);
      if (known === undefined || known.organization !== organization) return undefined;
      const leftMs = known.until - clock.now();
      // A clock that was set back makes nobody known for longer.
      return leftMs > 0 && leftMs <= keptMs ? known.principal : undefined;
    },
    keeper() {
      const current = callers;
      return ({ authorization = "", organization }, principal, endsAt) => {
        if (current.size >= keptMax) current.clear();
        const until = Math.min(clock.now() + keptMs, endsAt ?? Number.POSITIVE_INFINITY);
        current.set(authorization, { principal, organization, until });
      };
    },
  };
}
