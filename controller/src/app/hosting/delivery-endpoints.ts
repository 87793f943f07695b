import { isDeepStrictEqual } from "node:util";
import type { DeliveredEndpoint, Delivery, EndpointTarget } from "./delivery-plan.ts";

/** Number of relays of a machine. */
const relaysMax = 32;

/** State of the machines in a delivery, besides their releases. */
interface DeliveredState {
  /** Endpoint that has a relay before all others. */
  readonly first?: EndpointTarget | undefined;
  readonly targets: readonly EndpointTarget[];
  readonly isStopped: boolean;
  readonly drainedIds?: readonly string[];
}

/**
 * The delivery with these endpoints, for machines that run, are drained or are stopped. It has another generation if it
 * differs from the one before. Endpoints that find no relay are left out: private names come first, since variables
 * have those.
 */
export function completeDelivery(
  before: Delivery | null,
  after: Delivery | null,
  { first, targets, isStopped, drainedIds = [] }: DeliveredState,
): Delivery | null {
  if (after === null) return null;
  const { isStopped: wasStopped = false, drainedIds: formerIds = [], ...rest } = after;
  const endpoints = deliveredEndpoints(before?.endpoints ?? [], first, targets);
  const isSame = isDeepStrictEqual([endpoints, drainedIds], [after.endpoints ?? [], formerIds]);
  if (isSame && wasStopped === isStopped) return after;
  const generation = after.generation === before?.generation ? after.generation + 1 : after.generation;
  return {
    ...rest,
    generation,
    endpoints,
    ...(isStopped && { isStopped }),
    ...(drainedIds.length > 0 && { drainedIds }),
  };
}

function deliveredEndpoints(
  before: readonly DeliveredEndpoint[],
  first: EndpointTarget | undefined,
  targets: readonly EndpointTarget[],
): readonly DeliveredEndpoint[] {
  const labelOf = ({ host, port }: EndpointTarget) => `${Number(!host.includes(".private."))} ${host} ${port}`;
  const relays = new Map(before.map((each) => [labelOf(each), each.relay]));
  const sorted = targets.toSorted((a, b) => (labelOf(a) < labelOf(b) ? -1 : 1));
  const desired = [...(first === undefined ? [] : [first]), ...sorted].slice(0, relaysMax);
  const used = new Set(desired.flatMap((each) => relays.get(labelOf(each)) ?? []));
  const free = Array.from({ length: relaysMax }, (_, index) => index + 1).filter((number) => !used.has(number));
  return desired.map((each) => ({ ...each, relay: relays.get(labelOf(each)) ?? free.shift() ?? 0 }));
}
