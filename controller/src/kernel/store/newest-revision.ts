import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Store } from "./store.ts";

/** Checks that a revision exists in etcd. */
export interface NewestRevision {
  /** Throws INVALID_REQUEST for a revision beyond etcd's, STORE_UNAVAILABLE when etcd does not respond. */
  require(revision: bigint): Promise<void>;
}

/** Concurrent callers share one query to etcd; callers that arrive during it share the next one. */
export function createNewestRevision(store: Pick<Store, "revision">): NewestRevision {
  let highest = 0n;
  let inFlight: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function query(): Promise<void> {
    const newest = await store.revision();
    if (newest > highest) highest = newest;
  }

  /**
   * Starts a new query for this caller: a query that began before the call may return an older revision than the caller
   * saw.
   */
  function queryFromNow(): Promise<void> {
    if (inFlight === undefined) {
      inFlight = query().finally(() => {
        inFlight = undefined;
      });
      return inFlight;
    }
    next ??= inFlight
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return queryFromNow();
      });
    return next;
  }

  return {
    async require(revision) {
      if (revision <= highest) return;
      await queryFromNow();
      if (revision <= highest) return;
      const detail = "is not a revision of the store: use the value of an earlier response";
      const errors = [{ field: "Holdfast-Revision", pointer: null, code: "invalid_revision", detail }];
      throw new HoldfastError("INVALID_REQUEST", `Holdfast-Revision ${detail}`, { errors });
    },
  };
}
