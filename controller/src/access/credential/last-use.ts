import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { type CredentialUse, credentialUseKind } from "./credential.ts";

/** Time (milliseconds since 1970) and source of the last use of a credential. */
export interface CredentialUseTime {
  readonly at: number;
  readonly source: string;
}

/** Last uses of keys, tokens and sessions: recorded in memory at each call, written once a minute. */
export interface LastUse {
  record(id: string, organizationId: string, source: string): void;
  of(id: string): CredentialUseTime | undefined;
  close(): Promise<void>;
}

const writeMs = 60_000;
const batch = 100;

export function createLastUse(deps: {
  readonly store: Store;
  readonly uses: Collection<CredentialUse>;
  /** True if the credential exists; uses of deleted ones are not written. */
  readonly exists: (id: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}): LastUse {
  const { store, uses, exists, clock, log } = deps;
  const pendingUses = new Map<string, { at: number; source: string; organizationId: string }>();

  async function write(): Promise<void> {
    const due = [...pendingUses].filter(([id, { at }]) => exists(id) && at > (uses.get(id)?.object.spec.at ?? 0));
    pendingUses.clear();
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
    record(id, organizationId, source) {
      const pending = pendingUses.get(id);
      if (pending === undefined) pendingUses.set(id, { at: clock.now(), source, organizationId });
      else {
        pending.at = clock.now();
        pending.source = source;
      }
    },
    of(id) {
      const stored = uses.get(id)?.object.spec;
      const pending = pendingUses.get(id);
      return pending !== undefined && pending.at > (stored?.at ?? 0) ? pending : stored;
    },
    async close() {
      clearInterval(timer);
      await write().catch(notWritten);
    },
  };
}
