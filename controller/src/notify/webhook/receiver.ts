import type { WaitingDelivery } from "./deliveries.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { RetryPolicyName } from "./retry-policy.ts";

/** Something that events are delivered to: a webhook endpoint, or a channel of alerts. */
export interface Receiver {
  readonly id: string;
  readonly organizationId: string;
  /** What waits for one that is not is dropped. */
  readonly isActive: boolean;
  readonly retryPolicy: RetryPolicyName;
  /** Tries once. Throws only when the signal aborts. */
  send(event: WaitingDelivery["event"], signal: AbortSignal): Promise<AttemptOutcome>;
}

export interface AttemptOutcome {
  /** Null when there is none, as with mail or without an answer. */
  readonly responseStatus: number | null;
  /** Null when it was taken. */
  readonly errorMessage: string | null;
}

/** The receivers of one kind, or of all. */
export interface Receivers {
  get(id: string): Receiver | undefined;
  ids(): Iterable<string>;
  /** Ids of those that get the event. */
  wanting(event: EventEntry): readonly string[];
  /** Calls back with the id of each that came, changed or went. */
  subscribe(onChange: (id: string) => void): Watch;
  /** Resolves when the memory has this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  readonly ready: Promise<unknown>;
  /** Told after an attempt of one whose attempts have all failed since a time, milliseconds since 1970. */
  failing(id: string, since: number, signal: AbortSignal): Promise<void>;
}

/** Several kinds as one. */
export function allReceivers(kinds: readonly Receivers[]): Receivers {
  const owner = (id: string) => kinds.find((kind) => kind.get(id) !== undefined);
  return {
    get: (id) => owner(id)?.get(id),
    ids: () => kinds.flatMap((kind) => [...kind.ids()]),
    wanting: (event) => kinds.flatMap((kind) => kind.wanting(event)),
    subscribe(onChange) {
      const watching = kinds.map((kind) => kind.subscribe(onChange));
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
    reached: async (revision, timeoutMs) =>
      void (await Promise.all(kinds.map((kind) => kind.reached(revision, timeoutMs)))),
    ready: Promise.all(kinds.map(({ ready }) => ready)),
    failing: async (id, since, signal) => owner(id)?.failing(id, since, signal),
  };
}
