import type { Idempotency } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Store, StoredValue } from "./store.ts";

/** How much is kept for one principal, one organization and in all; answers of one day. */
export interface KeptAnswerLimits {
  readonly principal: Share;
  readonly organization: Share;
  readonly all: Share;
}

interface Share {
  readonly answers: number;
  readonly bytes: number;
}

const mebibyte = 1024 * 1024;

/** A person or a program that works all day stays far below; a loop that forgot how to end does not. */
const keptAnswerLimits: KeptAnswerLimits = {
  principal: { answers: 10_000, bytes: 32 * mebibyte },
  organization: { answers: 20_000, bytes: 64 * mebibyte },
  all: { answers: 100_000, bytes: 256 * mebibyte },
};

/** Bytes of the largest answer that is kept. */
export const keptAnswerBytesMax = 64 * 1024;

/** Counts the answers that are kept, those of other controllers too, as the watch tells of them. */
export interface KeptAnswerRoom {
  /**
   * Takes room for one more answer; the function that it answers gives the room back. Throws RATE_LIMITED without room.
   * An answer that is kept meanwhile counts twice for a moment.
   */
  take(idempotency: Idempotency): () => void;
  close(): void;
}

/** The owner in a kept answer; those of earlier releases have none. */
export interface KeptOwner {
  readonly principal?: string;
  readonly organizationId?: string;
}

interface Counted extends KeptOwner {
  readonly bytes: number;
}

interface Used {
  answers: number;
  bytes: number;
}

const allName = "all";
const minutesUntilRoom = 10;

export function createKeptAnswerRoom(
  store: Store,
  prefix: string,
  limits: KeptAnswerLimits = keptAnswerLimits,
): KeptAnswerRoom {
  let counted = new Map<string, Counted>();
  let used = new Map<string, Used>();

  const watch = store.watch(prefix, {
    reset() {
      counted = new Map();
      used = new Map();
    },
    put: ({ key, value }: StoredValue) => {
      remove(key);
      const { principal, organizationId }: KeptOwner = JSON.parse(value);
      const entry = {
        bytes: key.length + value.length,
        ...(principal !== undefined && { principal }),
        ...(organizationId !== undefined && { organizationId }),
      };
      counted.set(key, entry);
      add(entry, 1);
    },
    delete: remove,
    synced() {},
  });

  function remove(key: string): void {
    const entry = counted.get(key);
    if (entry === undefined) return;
    counted.delete(key);
    add(entry, -1);
  }

  function add(entry: Counted, sign: 1 | -1): void {
    for (const [name] of sharesOf(entry, limits)) {
      const each = used.get(name) ?? { answers: 0, bytes: 0 };
      each.answers += sign;
      each.bytes += sign * entry.bytes;
      if (each.answers > 0) used.set(name, each);
      else used.delete(name);
    }
  }

  return {
    take(idempotency) {
      const entry = { ...ownerOf(idempotency), bytes: 0 };
      for (const [name, share] of sharesOf(entry, limits)) {
        const { answers, bytes } = used.get(name) ?? { answers: 0, bytes: 0 };
        if (answers < share.answers && bytes < share.bytes) continue;
        const whose =
          name === allName ? "the installation" : name.startsWith("org ") ? "the organization" : "the credential";
        const detail = `Answers are kept for a day, and there is no room for more of ${whose}. Nothing was done.`;
        throw new HoldfastError("RATE_LIMITED", detail, { retryAfterS: minutesUntilRoom * 60 });
      }
      add(entry, 1);
      let taken = true;
      return () => {
        if (taken) add(entry, -1);
        taken = false;
      };
    },
    close: watch.close,
  };
}

/** The owner of the future answer. */
export function ownerOf({ principal, organizationId }: Idempotency): KeptOwner {
  return { principal, ...(organizationId !== undefined && { organizationId }) };
}

function sharesOf({ principal, organizationId }: KeptOwner, limits: KeptAnswerLimits): [string, Share][] {
  return [
    ...(principal === undefined ? [] : [[`by ${principal}`, limits.principal] as [string, Share]]),
    ...(organizationId === undefined ? [] : [[`org ${organizationId}`, limits.organization] as [string, Share]]),
    [allName, limits.all],
  ];
}
