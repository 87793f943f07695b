import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import { CreateAlertRuleRequestSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { GetMetricsRequestSchema, ListMetricSamplesRequestSchema } from "@holdfast/proto/holdfast/v1/metric_pb.ts";

const metric = { enum: metricCatalog.map(({ name }) => name) };

/** Metrics are those of the catalog. */
export const insightForms: readonly Form[] = [
  [GetMetricsRequestSchema.field.metric, metric],
  [ListMetricSamplesRequestSchema.field.metric, metric],
  [CreateAlertRuleRequestSchema.field.metric, metric],
];
