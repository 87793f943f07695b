import { type GetMetricsRequestSchema, MetricService } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import {
  casesOf,
  type Contract,
  objectScoped,
  ofCaller,
  ofPlatform,
  ofService,
} from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.GetMetricsRequest": {
      readonly period: "15m" | "1h" | "6h" | "24h" | "7d";
      readonly resolution: "1m" | "5m" | "1h";
    };
    readonly "holdfast.v1.Metrics": { readonly resolution: "1m" | "5m" | "1h" };
  }
}

export default {
  authorization: [
    casesOf(MetricService, {
      getMetrics: objectScoped(({ serviceId }) => ({ service_id: serviceId, metric: ["cpu"] })),
      listMetricSamples: objectScoped(({ serviceId }) => ({ service_id: serviceId, metric: ["cpu"] })),
      exportServiceMetrics: ofService,
      exportMetrics: ofCaller,
      exportPlatformMetrics: ofPlatform,
    }),
  ],
  sdk: [
    sdkCalls(MetricService, {
      listMetricSamples: (c) => c.metrics.samples("i", { metric: ["cpu"], since: time }, page),
      getMetrics: (c) =>
        c.metrics.get("i", { metric: ["cpu"], period: "1h", resolution: "1m", node_id: ["n"], start: time, end: time }),
      exportServiceMetrics: (c) => c.metrics.export("i"),
      exportPlatformMetrics: (c) => c.metrics.exportPlatform(),
      exportMetrics: (c) => c.metrics.exportAll(),
    }),
  ],
  sdkInputs: sameInputs<{
    metricQuery: SameInput<sdk.MetricQuery, typeof GetMetricsRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.MetricSample.values": "the requested metrics",
    "holdfast.v1.MetricSeries.points": "the points of a period at its finest resolution",
    "holdfast.v1.Metrics.absent": "metrics and nodes of one service",
    "holdfast.v1.Metrics.series": "metrics and nodes of one service",
  },
} satisfies Contract;
