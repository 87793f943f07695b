import type { Room } from "../history/deliveries.ts";

/** How many attempts may be in flight: in all, for one organization, for one endpoint, for one that fails. */
export interface SlotLimits {
  readonly total: number;
  readonly organization: number;
  readonly endpoint: number;
  readonly failing: number;
}

/** Of one controller. */
const slotLimits: SlotLimits = { total: 1_024, organization: 128, endpoint: 16, failing: 1 };

/**
 * Shares the attempts in flight among endpoints, in turns. It knows which endpoints may have something due, never the
 * deliveries that wait: however many these are, this stays as small as the endpoints are many.
 */
export interface EndpointSlots {
  /** Something of the endpoint is due at this time, or may be. */
  expect(webhookId: string, at: number): void;
  /**
   * How much each endpoint may begin now, those that waited longest first. The room is held for them until `release`; they
   * are not looked at again until expected.
   */
  take(now: number): Room[];
  /** Gives back what `take` held; what was found is begun right after. */
  release(rooms: readonly Room[]): void;
  /** When `take` will have something if nothing ends before; Infinity for never. */
  nextAt(): number;
  begin(webhookId: string, deliveryId: string): void;
  /** Begins a delivery that has just come, unless others of its endpoint are before it or there is no room. */
  tryBegin(webhookId: string, deliveryId: string, now: number): boolean;
  end(webhookId: string, deliveryId: string, succeeded: boolean): void;
  remove(webhookId: string): void;
  /** Deliveries of these endpoints that are in flight. */
  inFlight(rooms: readonly Room[]): string[];
}

interface Endpoint {
  readonly organizationId: string;
  readonly running: Set<string>;
  held: number;
  lookAt: number;
  failing: boolean;
}

/** Endpoints looked at in one turn: what they get is one query. */
const turnMax = 200;
const never = Number.POSITIVE_INFINITY;

export function createEndpointSlots(
  organizationOf: (webhookId: string) => string | undefined,
  limits: SlotLimits = slotLimits,
): EndpointSlots {
  /** Those with anything to remember. */
  const endpoints = new Map<string, Endpoint>();
  /** Those with something to look at, in the order of turns: who was served comes in again at the end. */
  const expected = new Map<string, Endpoint>();
  const byOrganization = new Map<string, number>();
  let total = 0;

  function count(organizationId: string, change: number): void {
    total += change;
    const used = (byOrganization.get(organizationId) ?? 0) + change;
    if (used === 0) byOrganization.delete(organizationId);
    else byOrganization.set(organizationId, used);
  }

  function roomOf({ organizationId, running, held, failing }: Endpoint): number {
    const own = (failing ? limits.failing : limits.endpoint) - running.size - held;
    return Math.min(limits.total - total, limits.organization - (byOrganization.get(organizationId) ?? 0), own);
  }

  function endpointOf(id: string): Endpoint | undefined {
    const known = endpoints.get(id);
    if (known !== undefined) return known;
    const organizationId = organizationOf(id);
    if (organizationId === undefined) return undefined;
    const endpoint = { organizationId, running: new Set<string>(), held: 0, lookAt: never, failing: false };
    endpoints.set(id, endpoint);
    return endpoint;
  }

  function forgetIfIdle(id: string, { running, held, lookAt, failing }: Endpoint): void {
    if (running.size === 0 && held === 0 && lookAt === never && !failing) endpoints.delete(id);
  }

  function begin(id: string, deliveryId: string): void {
    const endpoint = endpointOf(id);
    if (endpoint === undefined) return;
    endpoint.running.add(deliveryId);
    count(endpoint.organizationId, 1);
  }

  return {
    expect(id, at) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined) return;
      endpoint.lookAt = Math.min(endpoint.lookAt, at);
      expected.set(id, endpoint);
    },
    take(now) {
      const rooms: Room[] = [];
      for (const [webhookId, endpoint] of expected) {
        if (total >= limits.total || rooms.length === turnMax) break;
        if (endpoint.lookAt > now) continue;
        const room = roomOf(endpoint);
        if (room <= 0) continue;
        rooms.push({ webhookId, room });
        endpoint.held += room;
        count(endpoint.organizationId, room);
        endpoint.lookAt = never;
        expected.delete(webhookId);
      }
      return rooms;
    },
    release(rooms) {
      for (const { webhookId, room } of rooms) {
        const endpoint = endpoints.get(webhookId);
        if (endpoint === undefined) continue;
        endpoint.held -= room;
        count(endpoint.organizationId, -room);
        forgetIfIdle(webhookId, endpoint);
      }
    },
    nextAt() {
      let first = never;
      if (total >= limits.total) return first;
      for (const endpoint of expected.values())
        if (endpoint.lookAt < first && roomOf(endpoint) > 0) first = endpoint.lookAt;
      return first;
    },
    begin,
    tryBegin(id, deliveryId, now) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined || endpoint.held > 0 || endpoint.lookAt <= now || roomOf(endpoint) <= 0) return false;
      begin(id, deliveryId);
      return true;
    },
    end(id, deliveryId, succeeded) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined || !endpoint.running.delete(deliveryId)) return;
      count(endpoint.organizationId, -1);
      endpoint.failing = !succeeded;
      forgetIfIdle(id, endpoint);
    },
    remove(id) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined) return;
      expected.delete(id);
      endpoint.lookAt = never;
      endpoint.failing = false;
      forgetIfIdle(id, endpoint);
    },
    inFlight: (rooms) => rooms.flatMap(({ webhookId }) => [...(endpoints.get(webhookId)?.running ?? [])]),
  };
}
