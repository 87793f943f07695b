import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { type CredentialUse, credentialUseKind } from "./credential.ts";

export interface Use {
  readonly at: number;
  readonly source: string;
}

/** When keys and tokens were last used. Noted in memory at each call, written at most once a minute. */
export interface LastUse {
  note(id: string, organizationId: string, source: string): void;
  of(id: string): Use | undefined;
  close(): Promise<void>;
}

const writeMs = 60_000;
const batch = 100;

export function createLastUse(deps: {
  readonly store: Store;
  readonly uses: Collection<CredentialUse>;
  /** Is the credential still there? The use of a deleted one is not written. */
  readonly exists: (id: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}): LastUse {
  const { store, uses, exists, clock, log } = deps;
  const noted = new Map<string, { at: number; source: string; organizationId: string }>();

  async function write(): Promise<void> {
    const due = [...noted].filter(([id, { at }]) => exists(id) && at > (uses.get(id)?.object.spec.at ?? 0));
    noted.clear();
    for (let from = 0; from < due.length; from += batch) {
      const puts = due.slice(from, from + batch).map(([id, { at, source, organizationId }]) => {
        const metadata = newMetadata(id, at, { organizationId });
        const use: CredentialUse = { metadata, spec: { at, source }, status: {} };
        return { key: keyOf(credentialUseKind, id), value: JSON.stringify(use) };
      });
      await store.commit({ conditions: [], puts, deletes: [] });
    }
  }

  const notWritten = (error: unknown) => log.warn("last use not written", { error });
  const timer = setInterval(() => {
    write().catch(notWritten);
  }, writeMs).unref();
  return {
    note(id, organizationId, source) {
      const known = noted.get(id);
      if (known === undefined) noted.set(id, { at: clock.now(), source, organizationId });
      else {
        known.at = clock.now();
        known.source = source;
      }
    },
    of(id) {
      const stored = uses.get(id)?.object.spec;
      const here = noted.get(id);
      return here !== undefined && here.at > (stored?.at ?? 0) ? here : stored;
    },
    async close() {
      clearInterval(timer);
      await write().catch(notWritten);
    },
  };
}
