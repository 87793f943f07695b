import type { WaitingDelivery } from "./deliveries.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { RetryPolicyName } from "./retry-policy.ts";

/** A receiver of events: a webhook endpoint or an alert channel. */
export interface Receiver {
  readonly id: string;
  readonly organizationId: string;
  /** False if the receiver is disabled: its waiting deliveries are deleted. */
  readonly isActive: boolean;
  readonly retryPolicy: RetryPolicyName;
  /** Makes one attempt. Throws only if the signal aborts. */
  send(event: WaitingDelivery["event"], signal: AbortSignal): Promise<AttemptOutcome>;
}

export interface AttemptOutcome {
  /** HTTP status; null for mail, and if there was no response. */
  readonly responseStatus: number | null;
  /** Null if the attempt succeeded. */
  readonly errorMessage: string | null;
  /** Wait in milliseconds that the endpoint requests before the next attempt (Retry-After), at most a day. */
  readonly retryAfterMs?: number | undefined;
}

/** True for 410 Gone, by which the endpoint refuses all further deliveries. */
export function refusesDeliveries({ responseStatus }: Pick<AttemptOutcome, "responseStatus">): boolean {
  return responseStatus === 410;
}

export interface EndpointFailure {
  /** Time since which all attempts failed, in milliseconds since 1970. */
  readonly since: number;
  /** True if the endpoint responded with 410. */
  readonly refusesDeliveries: boolean;
}

/** The receivers of one type, or of all types. */
export interface Receivers {
  get(id: string): Receiver | undefined;
  ids(): Iterable<string>;
  /** Ids of the receivers that get the event. */
  subscribersOf(event: EventEntry): readonly string[];
  /** Calls `onChange` with the id of each receiver that was created, changed or deleted. */
  subscribe(onChange: (id: string) => void): Watch;
  /** Resolves when the collections include this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  untilRevision(revision: bigint, timeoutMs: number): Promise<void>;
  readonly ready: Promise<unknown>;
  /** Called after a failed attempt. */
  failing(id: string, failure: EndpointFailure, signal: AbortSignal): Promise<void>;
}

/** Joins several types of receivers. */
export function allReceivers(kinds: readonly Receivers[]): Receivers {
  const owner = (id: string) => kinds.find((kind) => kind.get(id) !== undefined);
  return {
    get: (id) => owner(id)?.get(id),
    ids: () => kinds.flatMap((kind) => [...kind.ids()]),
    subscribersOf: (event) => kinds.flatMap((kind) => kind.subscribersOf(event)),
    subscribe(onChange) {
      const watching = kinds.map((kind) => kind.subscribe(onChange));
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
    untilRevision: async (revision, timeoutMs) =>
      void (await Promise.all(kinds.map((kind) => kind.untilRevision(revision, timeoutMs)))),
    ready: Promise.all(kinds.map(({ ready }) => ready)),
    failing: async (id, failure, signal) => owner(id)?.failing(id, failure, signal),
  };
}
