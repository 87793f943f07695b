import type { MetricQuery, Metrics } from "./metric-types.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** What services' machines and engines did over time, sampled every 15 s. The catalogue has the names of all metrics. */
export class ServiceMetrics {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get(serviceId: string, { metric, node_id, ...query }: MetricQuery, options?: CallOptions): Promise<Metrics> {
    return this.#transport.request("GET", pathOf("managed-services", serviceId, "metrics"), {
      ...options,
      query: { ...query, metric, node_id },
    });
  }
}
