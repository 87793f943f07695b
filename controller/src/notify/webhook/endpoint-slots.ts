import { createSlotCounts } from "#kernel/runtime/slot-counts.ts";
import type { Room } from "./deliveries.ts";
import { isUnwellShare, type SlotLimits, shareAfter, slotLimits } from "./endpoint-share.ts";

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
  /**
   * Begins a delivery that has just come, unless others of its endpoint are before it, its endpoint is unwell, there is no
   * room, or an endpoint that has nothing in flight waits for the same room.
   */
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
  share: number;
}

/** Endpoints looked at in one turn: what they get is one query. */
const turnMax = 200;
const never = Number.POSITIVE_INFINITY;
/** Stands for all organizations. */
const everywhere = "";

export function createEndpointSlots(
  organizationOf: (webhookId: string) => string | undefined,
  limits: SlotLimits = slotLimits,
): EndpointSlots {
  /** Those with anything to remember. */
  const endpoints = new Map<string, Endpoint>();
  /** Those with something to look at, in the order of turns: who was served comes in again at the end. */
  const expected = new Map<string, Endpoint>();
  const counts = createSlotCounts(limits);
  /** Organizations in which an endpoint had nothing in flight and found no room in the last turn. */
  const inLine = new Set<string>();

  const isUnwell = ({ share }: Endpoint) => isUnwellShare(share, limits);
  const usedBy = ({ running, held }: Endpoint) => running.size + held;

  function roomOf(endpoint: Endpoint): number {
    const used = usedBy(endpoint);
    return Math.min(endpoint.share - used, counts.room(endpoint.organizationId, used, isUnwell(endpoint)));
  }

  /** An endpoint at its limit is skipped until one of its attempts ends. */
  function lineUp(id: string, endpoint: Endpoint): void {
    if (endpoint.lookAt !== never && usedBy(endpoint) < endpoint.share) expected.set(id, endpoint);
  }

  function endpointOf(id: string): Endpoint | undefined {
    const known = endpoints.get(id);
    if (known !== undefined) return known;
    const organizationId = organizationOf(id);
    if (organizationId === undefined) return undefined;
    const endpoint = { organizationId, running: new Set<string>(), held: 0, lookAt: never, share: limits.starting };
    endpoints.set(id, endpoint);
    return endpoint;
  }

  function forgetIfIdle(id: string, endpoint: Endpoint): void {
    const nothingToKnow = endpoint.share === limits.starting || organizationOf(id) === undefined;
    if (usedBy(endpoint) === 0 && endpoint.lookAt === never && nothingToKnow) endpoints.delete(id);
  }

  function begin(id: string, deliveryId: string): void {
    const endpoint = endpointOf(id);
    if (endpoint === undefined) return;
    endpoint.running.add(deliveryId);
    counts.add(endpoint.organizationId, 1, isUnwell(endpoint));
  }

  /** What it has in flight is counted where it belongs from now on. */
  function setShare(endpoint: Endpoint, share: number): void {
    counts.add(endpoint.organizationId, -usedBy(endpoint), isUnwell(endpoint));
    endpoint.share = share;
    counts.add(endpoint.organizationId, usedBy(endpoint), isUnwell(endpoint));
  }

  return {
    expect(id, at) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined) return;
      endpoint.lookAt = Math.min(endpoint.lookAt, at);
      lineUp(id, endpoint);
    },
    take(now) {
      const rooms: Room[] = [];
      inLine.clear();
      for (const [webhookId, endpoint] of expected) {
        if (rooms.length === turnMax) break;
        if (endpoint.lookAt > now) continue;
        const room = Math.min(roomOf(endpoint), limits.turn);
        if (room <= 0) {
          if (usedBy(endpoint) === 0 && !isUnwell(endpoint))
            inLine.add(counts.full ? everywhere : endpoint.organizationId);
          continue;
        }
        rooms.push({ webhookId, room });
        endpoint.held += room;
        counts.add(endpoint.organizationId, room, isUnwell(endpoint));
        endpoint.lookAt = never;
        expected.delete(webhookId);
      }
      return rooms;
    },
    release(rooms) {
      for (const { webhookId, room } of rooms) {
        const endpoint = endpoints.get(webhookId);
        if (endpoint === undefined) continue;
        counts.add(endpoint.organizationId, -room, isUnwell(endpoint));
        endpoint.held -= room;
        lineUp(webhookId, endpoint);
        forgetIfIdle(webhookId, endpoint);
      }
    },
    nextAt() {
      let first = never;
      for (const endpoint of expected.values())
        if (endpoint.lookAt < first && roomOf(endpoint) > 0) first = endpoint.lookAt;
      return first;
    },
    begin,
    tryBegin(id, deliveryId, now) {
      const endpoint = endpointOf(id);
      if (endpoint === undefined || endpoint.held > 0 || endpoint.lookAt <= now || isUnwell(endpoint)) return false;
      if (inLine.has(everywhere) || inLine.has(endpoint.organizationId) || roomOf(endpoint) <= 0) return false;
      begin(id, deliveryId);
      return true;
    },
    end(id, deliveryId, succeeded) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined || !endpoint.running.delete(deliveryId)) return;
      counts.add(endpoint.organizationId, -1, isUnwell(endpoint));
      setShare(endpoint, shareAfter(endpoint.share, succeeded, limits));
      lineUp(id, endpoint);
      forgetIfIdle(id, endpoint);
    },
    remove(id) {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined) return;
      expected.delete(id);
      endpoint.lookAt = never;
      setShare(endpoint, limits.starting);
      forgetIfIdle(id, endpoint);
    },
    inFlight: (rooms) => rooms.flatMap(({ webhookId }) => [...(endpoints.get(webhookId)?.running ?? [])]),
  };
}
