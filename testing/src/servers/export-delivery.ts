import { newConfiguration } from "@holdfast/controller/export/configuration/changed-configuration.ts";
import { type Delivered, deliverItems } from "@holdfast/controller/export/deliver-items.ts";
import type {
  DestinationResponse,
  Destination,
  Encoder,
  VendorUrls,
} from "@holdfast/controller/export/destinations/destination.ts";
import type { ExportItem, LogItem, MetricItem } from "@holdfast/controller/export/export-item.ts";
import { createExportSender, createProbe } from "@holdfast/controller/export/export-sender.ts";
import type { ExportDataType } from "@holdfast/controller/export/metrics-export.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";

/** A destination as in a controller: through its guard, sender and delivery, without service and history. */
export interface ExportDelivery {
  /** Probes the destination; resolves with the reason of a failure. */
  probe(dataType?: ExportDataType): Promise<string | undefined>;
  samples(items: readonly MetricItem[]): Promise<Delivered>;
  entries(items: readonly LogItem[]): Promise<Delivered>;
  /** Responses of the receiver so far. */
  readonly responses: readonly Pick<DestinationResponse, "status" | "body">[];
  /** Waits between attempts, in milliseconds; no test waits that long. */
  readonly waits: readonly number[];
}

export interface DeliveryOptions {
  readonly egress: EgressClient;
  readonly vendors?: Partial<VendorUrls>;
  /** Time limit of one request, and of a probe; ten seconds by default. */
  readonly deadlineMs?: number;
  /** True if attempts wait as long as a destination requests. */
  readonly waitsAsRequested?: boolean;
}

/** A guard that admits this host. */
export function loopbackEgress(): EgressClient {
  const noAddresses = { host: () => [], listeners: () => [], machineNetworks: () => [] };
  return createEgressClient({
    policy: createAddressPolicy(["127.0.0.0/8"], noAddresses),
    resolve: createResolveName(),
  });
}

export function createExportDelivery(
  destination: Destination,
  given: Readonly<Record<string, unknown>>,
  { egress, vendors: some, deadlineMs = 10_000, waitsAsRequested = false }: DeliveryOptions,
): ExportDelivery {
  const checked = newConfiguration(destination, given);
  if (!checked.ok) throw new Error(JSON.stringify(checked.faults));
  const { configuration } = checked;
  const vendors = { apm: "", cloud: "", logSaas: "", ...some };
  const responses: Pick<DestinationResponse, "status" | "body">[] = [];
  const waits: number[] = [];
  const watched: Destination = {
    ...destination,
    interpret(response, request) {
      responses.push(response);
      return destination.interpret(response, request);
    },
  };
  const target = { destination: watched, configuration, organizationId: "o" };
  const send = createExportSender({ egress: { users: egress, operators: egress }, vendors });
  const limits = () => ({ deadlineMs, signal: AbortSignal.timeout(120_000) });

  function deliver<I extends ExportItem>(items: readonly I[], encoder: Encoder<I> | undefined): Promise<Delivered> {
    if (encoder === undefined) throw new Error(`${destination.type} accepts none of them`);
    return deliverItems(items, {
      encoder,
      configuration,
      context: { nowMs: Date.now(), vendors },
      send: (request) => send(request, target, limits()),
      async wait(ms) {
        waits.push(ms);
        // Time: the delay of a destination, which requests it.
        if (waitsAsRequested) await new Promise((resolve) => setTimeout(resolve, ms));
      },
    });
  }

  return {
    probe: (dataType = "both") =>
      createProbe({
        send,
        vendors,
        clock: { now: Date.now, monotonicMs: () => performance.now() },
        withinMs: deadlineMs,
      })(target, dataType, limits().signal),
    samples: (items) => deliver(items, destination.metrics),
    entries: (items) => deliver(items, destination.logs),
    responses: responses,
    waits,
  };
}
