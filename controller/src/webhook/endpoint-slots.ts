import type { Room } from "../history/deliveries.ts";

/** How many attempts may be in flight: in all, for one organization, for one endpoint, for one that fails. */
export interface SlotLimits {
  readonly total: number;
  readonly organization: number;
  readonly endpoint: number;
  readonly failing: number;
}

export const slotLimits: SlotLimits = { total: 1_024, organization: 128, endpoint: 8, failing: 1 };

/**
 * Shares the attempts in flight among endpoints, in turns. It knows which endpoints may have something due, never the
 * deliveries that wait: however many these are, this stays as small as the endpoints are many.
 */
export interface EndpointSlots {
  /** Something of the endpoint is due at this time, or may be. */
  expect(webhookId: string, at: number): void;
  /** How much each endpoint may begin now, those that waited longest first. They are not looked at again until expected. */
  take(now: number): Room[];
  /** When `take` will have something if nothing ends before; Infinity for never. */
  nextAt(): number;
  begin(webhookId: string, deliveryId: string): void;
  end(webhookId: string, deliveryId: string, succeeded: boolean): void;
  remove(webhookId: string): void;
  inFlight(): string[];
}

interface Endpoint {
  readonly running: Set<string>;
  lookAt: number;
  failing: boolean;
}

/** Endpoints looked at in one turn: what they get is one query. */
const turnMax = 200;

export function createEndpointSlots(
  organizationOf: (webhookId: string) => string | undefined,
  limits: SlotLimits = slotLimits,
): EndpointSlots {
  // In the order of turns: who was served goes to the end.
  const endpoints = new Map<string, Endpoint>();

  function countRunning(): { total: number; byOrganization: Map<string, number> } {
    const byOrganization = new Map<string, number>();
    let total = 0;
    for (const [id, { running }] of endpoints) {
      if (running.size === 0) continue;
      total += running.size;
      const organization = organizationOf(id) ?? "";
      byOrganization.set(organization, (byOrganization.get(organization) ?? 0) + running.size);
    }
    return { total, byOrganization };
  }

  /** Calls back with each endpoint that has room, in turns, until all room is given. */
  function* withRoom(): Generator<[id: string, endpoint: Endpoint, room: number]> {
    const { total, byOrganization } = countRunning();
    let left = limits.total - total;
    for (const [id, endpoint] of endpoints) {
      if (left <= 0) return;
      const organization = organizationOf(id);
      if (organization === undefined || endpoint.lookAt === Number.POSITIVE_INFINITY) continue;
      const used = byOrganization.get(organization) ?? 0;
      const own = (endpoint.failing ? limits.failing : limits.endpoint) - endpoint.running.size;
      const room = Math.min(left, limits.organization - used, own);
      if (room <= 0) continue;
      yield [id, endpoint, room];
      byOrganization.set(organization, used + room);
      left -= room;
    }
  }

  function endpointOf(id: string): Endpoint {
    const known = endpoints.get(id) ?? { running: new Set(), lookAt: Number.POSITIVE_INFINITY, failing: false };
    endpoints.set(id, known);
    return known;
  }

  return {
    expect(id, at) {
      const endpoint = endpointOf(id);
      endpoint.lookAt = Math.min(endpoint.lookAt, at);
    },
    take(now) {
      const rooms: Room[] = [];
      for (const [webhookId, { lookAt }, room] of withRoom()) {
        if (lookAt <= now) rooms.push({ webhookId, room });
        if (rooms.length === turnMax) break;
      }
      for (const { webhookId } of rooms) {
        const endpoint = endpointOf(webhookId);
        endpoint.lookAt = Number.POSITIVE_INFINITY;
        endpoints.delete(webhookId);
        endpoints.set(webhookId, endpoint);
      }
      return rooms;
    },
    nextAt() {
      let first = Number.POSITIVE_INFINITY;
      for (const [, { lookAt }] of withRoom()) first = Math.min(first, lookAt);
      return first;
    },
    begin: (id, deliveryId) => void endpointOf(id).running.add(deliveryId),
    end(id, deliveryId, succeeded) {
      const endpoint = endpointOf(id);
      endpoint.running.delete(deliveryId);
      endpoint.failing = !succeeded;
    },
    remove(id) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined) return;
      endpoint.lookAt = Number.POSITIVE_INFINITY;
      if (endpoint.running.size === 0) endpoints.delete(id);
    },
    inFlight: () => [...endpoints.values()].flatMap(({ running }) => [...running]),
  };
}
