import type { Idempotency } from "@holdfast/common/call.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Store, StoredValue } from "./store.ts";

/** Limits of the responses that are stored for a day: per principal, per organization, and in the installation. */
export interface StoredResponseLimits {
  readonly principal: ResponseLimit;
  readonly organization: ResponseLimit;
  readonly all: ResponseLimit;
}

interface ResponseLimit {
  readonly responses: number;
  readonly bytes: number;
}

const mebibyte = 1024 * 1024;

/** Limits well above the needs of a user or program in a day; only a runaway loop reaches them. */
const storedResponseLimits: StoredResponseLimits = {
  principal: { responses: 10_000, bytes: 32 * mebibyte },
  organization: { responses: 20_000, bytes: 64 * mebibyte },
  all: { responses: 100_000, bytes: 256 * mebibyte },
};

/** Maximum size of a stored response, in bytes. */
export const storedResponseBytesMax = 64 * 1024;

/** Counts the stored responses of all controllers, by a watch, and bounds their number and size. */
export interface StoredResponseBudget {
  /**
   * Reserves space for one more response; the returned function releases it. Throws RATE_LIMITED if a limit is reached.
   * After the response is stored, it counts twice until its reservation is released.
   */
  reserve(idempotency: Idempotency): () => void;
  close(): void;
}

/** The owner in a stored response. */
export interface ResponseOwner {
  readonly principal?: string;
  readonly organizationId?: string;
}

interface Counted extends ResponseOwner {
  readonly bytes: number;
}

const installationKey = "all";
const retryAfterMinutes = 10;

export function createStoredResponseBudget(
  store: Store,
  prefix: string,
  limits: StoredResponseLimits = storedResponseLimits,
): StoredResponseBudget {
  let counted = new Map<string, Counted>();
  let used = { responses: createKeyedCounter(), bytes: createKeyedCounter() };

  const watch = store.watch(prefix, {
    reset() {
      counted = new Map();
      used = { responses: createKeyedCounter(), bytes: createKeyedCounter() };
    },
    put: ({ key, value }: StoredValue) => {
      remove(key);
      const { principal, organizationId }: ResponseOwner = JSON.parse(value);
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
    for (const [name] of limitsOf(entry, limits)) {
      used.responses.add(name, sign);
      used.bytes.add(name, sign * entry.bytes);
    }
  }

  return {
    reserve(idempotency) {
      const entry = { ...responseOwnerOf(idempotency), bytes: 0 };
      for (const [name, share] of limitsOf(entry, limits)) {
        if (used.responses.of(name) < share.responses && used.bytes.of(name) < share.bytes) continue;
        const subject =
          name === installationKey
            ? "the installation"
            : name.startsWith("org ")
              ? "the organization"
              : "the credential";
        const detail = `Responses to requests with Idempotency-Key are stored for a day, and ${subject} has reached its limit. Nothing was changed. Try again later, or without the header.`;
        throw new HoldfastError("RATE_LIMITED", detail, { retryAfterS: retryAfterMinutes * 60 });
      }
      add(entry, 1);
      let reserved = true;
      return () => {
        if (reserved) add(entry, -1);
        reserved = false;
      };
    },
    close: watch.close,
  };
}

/** The owner of a response to this request. */
export function responseOwnerOf({ principal, organizationId }: Idempotency): ResponseOwner {
  return { principal, ...(organizationId !== undefined && { organizationId }) };
}

function limitsOf(
  { principal, organizationId }: ResponseOwner,
  limits: StoredResponseLimits,
): [string, ResponseLimit][] {
  return [
    ...(principal === undefined ? [] : [[`by ${principal}`, limits.principal] as [string, ResponseLimit]]),
    ...(organizationId === undefined
      ? []
      : [[`org ${organizationId}`, limits.organization] as [string, ResponseLimit]]),
    [installationKey, limits.all],
  ];
}
