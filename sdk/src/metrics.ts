import type { MetricSample } from "./answers.ts";
import { follow } from "./follow.ts";
import type { SampleFilter } from "./inputs.ts";
import { MetricMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Metrics of services' machines and engines, sampled every 15 s. The catalog has the names of all metrics. */
export class ServiceMetrics extends MetricMethods {
  /** The samples so far, then each new one, until the signal aborts: the iteration then throws its reason. */
  followSamples(
    serviceId: string,
    filter: SampleFilter,
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<MetricSample, void, undefined> {
    const path = pathOf("managed-services", serviceId, "metrics", "samples");
    return follow(this.transport, path, { ...filter }, options);
  }
}
