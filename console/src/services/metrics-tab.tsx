import type { MetricPeriod } from "@holdfast/sdk/requests.ts";
import type { Metrics } from "@holdfast/sdk/responses.ts";
import { Chart } from "../charts/chart.tsx";
import { labelOf } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { SelectField } from "../parts/field.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Loading } from "../parts/parts.tsx";
import { currentAddress, setQuery } from "../router/location.ts";
import { account } from "../session/account.ts";
import type { TabProps } from "./tab-props.ts";
import { useCatalog } from "./use-catalog.ts";

const periods: readonly (readonly [MetricPeriod, string])[] = [
  ["1h", "Last hour"],
  ["6h", "Last 6 hours"],
  ["24h", "Last day"],
  ["7d", "Last week"],
];
const maxCharts = 12;

/** Charts of the metrics of the service's engine. */
export function MetricsTab({ service }: TabProps) {
  const catalog = useCatalog();
  const [period] = periods.find(([each]) => each === currentAddress.value.query.get("period")) ?? ["1h" as const];
  const names = (catalog?.metrics ?? [])
    .filter(
      ({ source, engines }) => source !== null && (engines.length === 0 || engines.includes(service.database_type)),
    )
    .map(({ name }) => name)
    .slice(0, maxCharts);
  const { data, error, reload } = useLive<Metrics | undefined>(
    `metrics ${service.id} ${period} ${names.join()}`,
    async (signal) =>
      names.length === 0
        ? undefined
        : account.value.client.metrics.get(service.id, { metric: names, period }, { signal }),
    { service: service.id, pollIntervalMs: 15_000 },
  );
  return (
    <>
      <SelectField label="Period" value={period} options={periods} onInput={(value) => setQuery("period", value)} />
      {data === undefined ? (
        error === undefined ? (
          <Loading rows={8} />
        ) : (
          <ErrorNotice error={error} onRetry={reload} />
        )
      ) : (
        <div class="halves">
          {names.map((name) => (
            <Chart key={name} title={labelOf(name)} metric={name} metrics={data} />
          ))}
        </div>
      )}
    </>
  );
}
