import {
  type CreateMetricsExportRequestSchema,
  MetricsExportService,
  type UpdateMetricsExportRequestSchema,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly exportId: string;
  }
}

const integration = objectScoped(({ exportId }) => ({ id: exportId }));

export default {
  authorization: [
    casesOf(MetricsExportService, {
      createMetricsExport: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "new",
        destination_type: "apm_platform",
        data_type: "metrics",
        configuration: { api_key: "k" },
      })),
      listMetricsExports: ofCaller,
      getMetricsExport: integration,
      updateMetricsExport: objectScoped(({ exportId }) => ({ id: exportId, name: "other" })),
      deleteMetricsExport: integration,
      disableMetricsExport: integration,
      enableMetricsExport: integration,
      testMetricsExport: integration,
    }),
  ],
  existing: async ({ make, marker, existing }) => {
    const { id: exportId } = await make("/api/v1/metrics-exports", {
      service_id: existing.serviceId,
      name: marker,
      destination_type: "prometheus_remote_write",
      data_type: "metrics",
      configuration: { url: `https://1.1.1.1/${marker}`, bearer_token: marker },
    });
    return { exportId };
  },
  sdk: [
    sdkCalls(MetricsExportService, {
      createMetricsExport: (c) =>
        c.exports.create({
          service_id: "s",
          name: "n",
          destination_type: "otlp",
          data_type: "both",
          export_interval_seconds: 30,
          configuration: {},
        }),
      listMetricsExports: (c) =>
        c.exports.page({ service_id: "s", destination_type: "otlp", is_enabled: true, limit: 7, offset: 7 }),
      getMetricsExport: (c) => c.exports.get("i"),
      updateMetricsExport: (c) =>
        c.exports.update("i", {
          service_id: null,
          name: "n",
          destination_type: "otlp",
          data_type: "logs",
          export_interval_seconds: 30,
          configuration: {},
          is_enabled: true,
        }),
      deleteMetricsExport: (c) => c.exports.delete("i"),
      disableMetricsExport: (c) => c.exports.disable("i"),
      enableMetricsExport: (c) => c.exports.enable("i"),
      testMetricsExport: (c) => c.exports.test("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    newMetricsExport: SameInput<Omit<sdk.NewMetricsExport, "service_id">, typeof CreateMetricsExportRequestSchema>;
    metricsExportChange: SameInput<
      Omit<sdk.MetricsExportChange, "service_id">,
      typeof UpdateMetricsExportRequestSchema
    >;
  }>(),
  listBounds: {
    "holdfast.v1.ListMetricsExportsResponse.integrations": "limit, 200 at most",
    "holdfast.v1.MetricsExport.warnings": "one of each kind",
  },
  nameScopes: {
    "metrics-export-api.ts": "organization or service: one of each destination type",
  },
  shapelessFields: {
    "holdfast.v1.CreateMetricsExportRequest.configuration": "bound",
    "holdfast.v1.UpdateMetricsExportRequest.configuration": "bound",
  },
} satisfies Contract;
