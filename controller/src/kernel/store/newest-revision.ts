import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Store } from "./store.ts";

/** Tells revisions that etcd has reached from invented ones. */
export interface NewestRevision {
  /** Throws INVALID_REQUEST for a revision beyond etcd's, STORE_UNAVAILABLE when etcd does not answer. */
  require(revision: bigint): Promise<void>;
}

/** All callers at a time share one question to etcd; callers that come meanwhile share the next one. */
export function createNewestRevision(store: Pick<Store, "revision">): NewestRevision {
  let known = 0n;
  let underWay: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function ask(): Promise<void> {
    const newest = await store.revision();
    if (newest > known) known = newest;
  }

  /** A question sent before the caller came may bring an older answer than the revision that the caller has seen. */
  function askFromNow(): Promise<void> {
    if (underWay === undefined) {
      underWay = ask().finally(() => {
        underWay = undefined;
      });
      return underWay;
    }
    next ??= underWay
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return askFromNow();
      });
    return next;
  }

  return {
    async require(revision) {
      if (revision <= known) return;
      await askFromNow();
      if (revision <= known) return;
      const detail = "is of no change that there was";
      const errors = [{ field: "Holdfast-Revision", pointer: null, code: "invalid_revision", detail }];
      throw new HoldfastError("INVALID_REQUEST", `Holdfast-Revision ${detail}`, { errors });
    },
  };
}
