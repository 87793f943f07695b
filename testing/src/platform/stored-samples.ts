import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { Platform } from "./platform.ts";
import { expectStatus } from "./services.ts";

/** A metric of one node at one time, as users read it from the history. */
export interface StoredValue {
  readonly nodeId: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly value: number;
}

interface PageJson {
  readonly samples: readonly {
    readonly time: string;
    readonly node_id: string;
    readonly values: Readonly<Record<string, number>>;
  }[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** Every value of a PostgreSQL service after a time, in milliseconds since 1970, at most 24 hours ago. */
export async function storedSamples(platform: Platform, serviceId: string, afterMs: number): Promise<StoredValue[]> {
  const exported = metricCatalog.filter(
    ({ source, engines }) => source !== null && (engines.length === 0 || engines.includes("postgresql")),
  );
  const values: StoredValue[] = [];
  for (let cursor: string | undefined; ; ) {
    const start = cursor === undefined ? { since: new Date(afterMs).toISOString() } : { cursor };
    const query = new URLSearchParams({ limit: "200", ...start });
    for (const { name } of exported) query.append("metric", name);
    const page = expectStatus(
      await platform.rest.get<PageJson>(`/managed-services/${serviceId}/metrics/samples?${query}`),
      200,
    ).json;
    for (const { time, node_id: nodeId, values: fixture } of page.samples)
      for (const [name, value] of Object.entries(fixture))
        values.push({ nodeId, name, timeMs: Date.parse(time), value });
    if (!page.has_more) return values;
    cursor = page.next_cursor;
  }
}
