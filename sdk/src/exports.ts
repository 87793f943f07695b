import type { DestinationType, MetricsExport, MetricsExportPage } from "./answers.ts";
import { ExportMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** Which integrations a list has, and which part of it. */
export interface ExportFilter {
  readonly service_id?: string;
  readonly destination_type?: DestinationType;
  readonly is_enabled?: boolean;
  /** 1 to 200; 50 unless given. */
  readonly limit?: number;
  readonly offset?: number;
}

const pageSize = 200;

/** Metrics and logs of services, pushed to where a team already looks. */
export class Exports extends ExportMethods {
  /** One page, with how many there are in all. */
  page(filter: ExportFilter = {}, options?: CallOptions): Promise<MetricsExportPage> {
    return this.transport.request("GET", "/api/v1/metrics-exports", { ...options, query: { ...filter } });
  }

  /** All of them, oldest first. */
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
