import type { MetricSample } from "./responses.ts";
import { follow } from "./follow.ts";
import type { SampleFilter } from "./requests.ts";
import { MetricMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Metrics of services' machines and engines, sampled every 15 s. The catalog lists all metrics. */
export class ServiceMetrics extends MetricMethods {
  /** Stored samples, then each new one, until the signal aborts; the iteration then throws the signal's reason. */
  followSamples(
    serviceId: string,
    filter: SampleFilter,
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<MetricSample, void, undefined> {
    const path = pathOf("managed-services", serviceId, "metrics", "samples");
    return follow(this.transport, path, { ...filter }, options);
  }
}
