import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import type { MetricPeriod } from "@holdfast/sdk/requests.ts";
import type { AlertRule, Metrics } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { type Monitored, metricsOf } from "../monitored.ts";
import { Button } from "../parts/button.tsx";
import { SelectField } from "../parts/field.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { chooseQuery, currentAddress } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account } from "../session/account.ts";
import { Chart } from "./chart.tsx";
import {
  type ChartMarker,
  type ChartRange,
  markersOf,
  rangeOfPeriod,
  shifted,
  thresholdsOf,
  zoomedIn,
  zoomOf,
} from "./chart-overlay.ts";

const periods: readonly (readonly [MetricPeriod, string])[] = [
  ["1h", "Last hour"],
  ["6h", "Last 6 hours"],
  ["24h", "Last day"],
  ["7d", "Last week"],
];
const maxCharts = 12;
const maxEvents = 200;

/**
 * Charts of the metrics of a service or an app, with markers of its events and lines of its alert rules. A selected
 * part of a chart is in the address, and is requested in the finest resolution.
 */
export function MetricCharts({ owner }: { readonly owner: Monitored }) {
  const { client } = account.value;
  const catalog = useCatalog();
  const { query } = currentAddress.value;
  const zoom = zoomOf(query);
  const [period] = periods.find(([each]) => each === query.get("period")) ?? ["1h" as const];
  const names = metricsOf(catalog, owner.software)
    .map(({ name }) => name)
    .slice(0, maxCharts);
  const time = zoom === undefined ? { period } : { start: isoOf(zoom.from), end: isoOf(zoom.to) };
  const { data, error, reload } = useLive<Metrics | undefined>(
    `metrics ${owner.id} ${JSON.stringify(time)} ${names.join()}`,
    async (signal) =>
      names.length === 0 ? undefined : client.metrics.get(owner.id, { metric: names, ...time }, { signal }),
    { service: owner.id, pollIntervalMs: zoom === undefined ? 15_000 : () => undefined },
  );
  const events = useLive<readonly PlatformEvent[]>(
    `markers ${owner.id}`,
    async (signal) => {
      const list = client.events.listOfService(owner.id, { newest: true }, { limit: maxEvents, signal });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    { service: owner.id },
  );
  const rules = useLive<readonly AlertRule[]>(`rules ${owner.id}`, (signal) =>
    client.alerts.rules(owner.id, { signal }).toArray(),
  );
  const range = zoom ?? rangeOfPeriod(period, Date.now());
  const markers = markersOf(events.data ?? [], range);
  const show = ({ from, to }: ChartRange) => chooseQuery({ from: isoOf(from), to: isoOf(to) });
  const unitOf = (metric: string) => catalog?.metrics.find(({ name }) => name === metric)?.unit ?? "count";
  return (
    <>
      <p class="quiet small">Drag over a chart to see that part of it in the finest resolution.</p>
      <div class="row fields">
        <SelectField
          label="Period"
          value={zoom === undefined ? period : ""}
          options={zoom === undefined ? periods : [["", "Selected"], ...periods]}
          onInput={(value) => chooseQuery({ period: value, from: undefined, to: undefined })}
        />
        <Button onClick={() => show(zoomedIn(range))}>Zoom in</Button>
        <Button onClick={() => show(shifted(range, -1, Date.now()))}>Earlier</Button>
        {zoom !== undefined && (
          <>
            <Button onClick={() => show(shifted(zoom, 1, Date.now()))}>Later</Button>
            <Button onClick={() => chooseQuery({ from: undefined, to: undefined })}>Show the period again</Button>
          </>
        )}
      </div>
      {data === undefined ? (
        error === undefined ? (
          <Loading rows={8} />
        ) : (
          <ErrorNotice error={error} onRetry={reload} />
        )
      ) : (
        <div class="halves">
          {names.map((name) => (
            <Chart
              key={name}
              title={labelOf(name)}
              metric={name}
              metrics={data}
              range={range}
              markers={markers}
              thresholds={thresholdsOf(rules.data ?? [], name, unitOf(name))}
              onZoom={show}
            />
          ))}
        </div>
      )}
      <Markers markers={markers} />
    </>
  );
}

/** The events whose numbers are in the charts. */
function Markers({ markers }: { readonly markers: readonly ChartMarker[] }) {
  if (markers.length === 0) return null;
  return (
    <Card title="Events in the charts" flush>
      <Table
        title="Events in the charts"
        entries={markers}
        keyOf={({ number }) => String(number)}
        columns={[
          ["Number", ({ number }) => <b>{number}</b>],
          ["Time", ({ time }) => new Date(time * 1_000).toLocaleString("en", { hourCycle: "h23" })],
          ["Event", ({ title }) => title],
        ]}
      />
    </Card>
  );
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
