import type { DestinationType, MetricsExport, MetricsExportPage } from "./responses.ts";
import { ExportMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** A filter of integrations, and the page of the list. */
export interface ExportFilter {
  readonly service_id?: string;
  readonly destination_type?: DestinationType;
  readonly is_enabled?: boolean;
  /** Page size, 1 to 200; 50 by default. */
  readonly limit?: number;
  readonly offset?: number;
}

const pageSize = 200;

/** Exports of metrics and logs to monitoring systems. */
export class Exports extends ExportMethods {
  /** One page of integrations, with their total number. */
  page(filter: ExportFilter = {}, options?: CallOptions): Promise<MetricsExportPage> {
    return this.transport.request("GET", "/api/v1/metrics-exports", { ...options, query: { ...filter } });
  }

  /** All integrations, oldest first. */
  async *list(
    filter: Omit<ExportFilter, "limit" | "offset"> = {},
    options?: CallOptions,
  ): AsyncGenerator<MetricsExport> {
    for (let offset = 0; ; offset += pageSize) {
      const { integrations, total } = await this.page({ ...filter, limit: pageSize, offset }, options);
      yield* integrations;
      if (offset + pageSize >= total) return;
    }
  }
}
