import type { PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";

/** Callers whose credentials were found good a moment ago, by the exact header that they sent. */
export interface KnownCallers {
  get(credentials: PresentedCredentials): Principal | undefined;
  /** To be called before a check begins: its result is kept only if nothing has changed meanwhile. */
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
 * All results are dropped at each change of the objects that checks read: a caller is never known for longer than this
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
      // A clock that was set back must not lengthen the time.
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
