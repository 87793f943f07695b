import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import {
  CreateMetricsExportRequestSchema,
  UpdateMetricsExportRequestSchema,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { configurationForm } from "./configuration/configuration-form.ts";
import type { Destination } from "./destinations/destination.ts";
import { destinations } from "./destinations/destinations.ts";
import { intervalForm } from "./export-request.ts";

const all: readonly Destination[] = Object.values(destinations);

/** "both" goes to any destination: what it has no place for is left out. */
function dataTypesOf({ metrics, logs }: Destination): readonly string[] {
  return [...(metrics === undefined ? [] : ["metrics"]), ...(logs === undefined ? [] : ["logs"]), "both"];
}

/** The configuration of an integration has the keys of its type of destination. */
export const exportForms: readonly Form[] = [
  [
    CreateMetricsExportRequestSchema,
    {
      oneOf: all.map((destination) => ({
        title: destination.type,
        properties: {
          destination_type: { const: destination.type },
          configuration: configurationForm(destination, false),
          data_type: { enum: dataTypesOf(destination) },
        },
      })),
    },
  ],
  [
    UpdateMetricsExportRequestSchema.field.configuration,
    { anyOf: all.map((destination) => ({ title: destination.type, ...configurationForm(destination, true) })) },
  ],
  [CreateMetricsExportRequestSchema.field.exportIntervalSeconds, intervalForm],
  [UpdateMetricsExportRequestSchema.field.exportIntervalSeconds, intervalForm],
];
