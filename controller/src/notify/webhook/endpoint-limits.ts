import { createFairShare, type FairShareLimits } from "@holdfast/common/concurrency/fair-share.ts";
import type { EndpointCapacity } from "./deliveries.ts";

/** Limits of attempts in flight. */
export interface AttemptLimits extends FairShareLimits {
  readonly endpoint: number;
  /** Initial limit of an endpoint. */
  readonly starting: number;
  /** Maximum number of attempts that an endpoint starts in one round, before others get capacity. */
  readonly perRound: number;
}

/** The limits of one controller. */
export const attemptLimits: AttemptLimits = {
  total: 1_024,
  organization: 128,
  endpoint: 16,
  starting: 4,
  perRound: 4,
  unhealthyShare: 1 / 4,
};

/**
 * The endpoint's limit after an attempt: additive increase on success, halved on failure, at least 1. An endpoint that
 * hangs has a limit of one after four failures; only successes raise it again.
 */
export function limitAfter(limit: number, succeeded: boolean, { endpoint }: AttemptLimits): number {
  return succeeded ? Math.min(limit + 1, endpoint) : Math.max(Math.floor(limit / 2), 1);
}

/** True if failures have reduced the limit below the initial limit. */
export function isUnhealthyLimit(limit: number, { starting }: AttemptLimits): boolean {
  return limit < starting;
}

/**
 * Shares the attempts in flight among endpoints, round robin. It stores the endpoints that may have due deliveries, not
 * the deliveries themselves, so its size depends only on the number of endpoints. The limit of each endpoint adapts to
 * its successes (`limitAfter`) and is below the limits of its organization and of the controller; unhealthy endpoints
 * share a part of both.
 */
export interface EndpointLimits {
  /** Notes that the endpoint may have a delivery that is due at this time. */
  expect(webhookId: string, at: number): void;
  /**
   * The number of deliveries that each endpoint may start now, the longest waiting first. The capacity is reserved
   * until `release`; these endpoints are skipped until the next `expect`.
   */
  take(now: number): EndpointCapacity[];
  /** Releases reservations of `take`; call `begin` for the found deliveries in the same tick of the event loop. */
  release(capacities: readonly EndpointCapacity[]): void;
  /** Time from which `take` returns an endpoint if no attempt ends before; Infinity: never. */
  nextAt(): number;
  begin(webhookId: string, deliveryId: string): void;
  /**
   * Starts a new delivery, unless earlier deliveries of its endpoint wait, the endpoint is unhealthy, there is no
   * capacity, or an endpoint without attempts in flight waits for the same capacity.
   */
  tryBegin(webhookId: string, deliveryId: string, now: number): boolean;
  end(webhookId: string, deliveryId: string, succeeded: boolean): void;
  remove(webhookId: string): void;
  /** Deliveries of these endpoints that are in flight. */
  inFlight(capacities: readonly EndpointCapacity[]): string[];
}

interface Endpoint {
  readonly organizationId: string;
  readonly running: Set<string>;
  reserved: number;
  checkAt: number;
  limit: number;
}

/** Maximum number of endpoints in one round; their deliveries are read by one query. */
const batchMax = 200;
const never = Number.POSITIVE_INFINITY;
/** The key that stands for all organizations. */
const allOrganizations = "";

export function createEndpointLimits(
  organizationOf: (webhookId: string) => string | undefined,
  limits: AttemptLimits = attemptLimits,
): EndpointLimits {
  /** The endpoints with state. */
  const endpoints = new Map<string, Endpoint>();
  /** The endpoints that may have due deliveries, in round-robin order: a served endpoint is appended. */
  const expected = new Map<string, Endpoint>();
  const counts = createFairShare(limits);
  /** Organizations in which an endpoint without attempts in flight found no capacity in the last round. */
  const starved = new Set<string>();

  const isUnhealthy = ({ limit }: Endpoint) => isUnhealthyLimit(limit, limits);
  const usedBy = ({ running, reserved }: Endpoint) => running.size + reserved;

  function capacityOf(endpoint: Endpoint): number {
    const used = usedBy(endpoint);
    return Math.min(endpoint.limit - used, counts.available(endpoint.organizationId, used, isUnhealthy(endpoint)));
  }

  /** An endpoint at its limit is skipped until one of its attempts ends. */
  function enqueue(id: string, endpoint: Endpoint): void {
    if (endpoint.checkAt !== never && usedBy(endpoint) < endpoint.limit) expected.set(id, endpoint);
  }

  function endpointOf(id: string): Endpoint | undefined {
    const existing = endpoints.get(id);
    if (existing !== undefined) return existing;
    const organizationId = organizationOf(id);
    if (organizationId === undefined) return undefined;
    const endpoint = {
      organizationId,
      running: new Set<string>(),
      reserved: 0,
      checkAt: never,
      limit: limits.starting,
    };
    endpoints.set(id, endpoint);
    return endpoint;
  }

  function forgetIfIdle(id: string, endpoint: Endpoint): void {
    const isDefault = endpoint.limit === limits.starting || organizationOf(id) === undefined;
    if (usedBy(endpoint) === 0 && endpoint.checkAt === never && isDefault) endpoints.delete(id);
  }

  function begin(id: string, deliveryId: string): void {
    const endpoint = endpointOf(id);
    if (endpoint === undefined) return;
    endpoint.running.add(deliveryId);
    counts.add(endpoint.organizationId, 1, isUnhealthy(endpoint));
  }

  /** Sets the endpoint's limit and counts its attempts under the new health. */
  function setLimit(endpoint: Endpoint, limit: number): void {
    counts.add(endpoint.organizationId, -usedBy(endpoint), isUnhealthy(endpoint));
    endpoint.limit = limit;
    counts.add(endpoint.organizationId, usedBy(endpoint), isUnhealthy(endpoint));
  }

  return {
    expect(id, at) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined) return;
      endpoint.checkAt = Math.min(endpoint.checkAt, at);
      enqueue(id, endpoint);
    },
    take(now) {
      const capacities: EndpointCapacity[] = [];
      starved.clear();
      for (const [webhookId, endpoint] of expected) {
        if (capacities.length === batchMax) break;
        if (endpoint.checkAt > now) continue;
        const capacity = Math.min(capacityOf(endpoint), limits.perRound);
        if (capacity <= 0) {
          if (usedBy(endpoint) === 0 && !isUnhealthy(endpoint))
            starved.add(counts.full ? allOrganizations : endpoint.organizationId);
          continue;
        }
        capacities.push({ webhookId, capacity });
        endpoint.reserved += capacity;
        counts.add(endpoint.organizationId, capacity, isUnhealthy(endpoint));
        endpoint.checkAt = never;
        expected.delete(webhookId);
      }
      return capacities;
    },
    release(capacities) {
      for (const { webhookId, capacity } of capacities) {
        const endpoint = endpoints.get(webhookId);
        if (endpoint === undefined) continue;
        counts.add(endpoint.organizationId, -capacity, isUnhealthy(endpoint));
        endpoint.reserved -= capacity;
        enqueue(webhookId, endpoint);
        forgetIfIdle(webhookId, endpoint);
      }
    },
    nextAt() {
      let first = never;
      for (const endpoint of expected.values())
        if (endpoint.checkAt < first && capacityOf(endpoint) > 0) first = endpoint.checkAt;
      return first;
    },
    begin,
    tryBegin(id, deliveryId, now) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined || endpoint.reserved > 0 || endpoint.checkAt <= now || isUnhealthy(endpoint))
        return false;
      if (starved.has(allOrganizations) || starved.has(endpoint.organizationId) || capacityOf(endpoint) <= 0)
        return false;
      begin(id, deliveryId);
      return true;
    },
    end(id, deliveryId, succeeded) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined || !endpoint.running.delete(deliveryId)) return;
      counts.add(endpoint.organizationId, -1, isUnhealthy(endpoint));
      setLimit(endpoint, limitAfter(endpoint.limit, succeeded, limits));
      enqueue(id, endpoint);
      forgetIfIdle(id, endpoint);
    },
    remove(id) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined) return;
      expected.delete(id);
      endpoint.checkAt = never;
      setLimit(endpoint, limits.starting);
      forgetIfIdle(id, endpoint);
    },
    inFlight: (capacities) => capacities.flatMap(({ webhookId }) => [...(endpoints.get(webhookId)?.running ?? [])]),
  };
}
