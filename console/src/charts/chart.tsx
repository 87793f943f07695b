import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Metrics } from "@holdfast/sdk/responses.ts";
import { metricText } from "../format.ts";
import { Card } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { theme } from "../shell/theme.ts";
import { type ChartMarker, type ChartRange, type ChartThreshold, rowsOf, widened } from "./chart-overlay.ts";
import { type ChartColumns, columnsOf, newestOf } from "./chart-view.ts";
import { optionsFor } from "./plot-options.ts";

const height = 200;

interface ChartProps {
  readonly title: string;
  readonly metric: string;
  readonly metrics: Metrics;
  readonly range: ChartRange;
  readonly markers?: readonly ChartMarker[];
  readonly thresholds?: readonly ChartThreshold[];
  /** Called with the period that the user selects; absent for a chart without a zoom. */
  readonly onZoom?: (range: ChartRange) => void;
}

/** One metric of each node, as a line of averages with a band from minimum to maximum, and a table behind it. */
export function Chart({ title, metric, metrics, range, markers = [], thresholds = [], onZoom }: ChartProps) {
  const series = metrics.series.filter(({ metric: of }) => of === metric);
  const unit = series[0]?.unit ?? "count";
  const newest = newestOf(series);
  const columns = columnsOf(series, metrics.resolution);
  const absent = metrics.absent.find(({ metric: of }) => of === metric);
  const isEmpty = columns.times.length === 0;
  return (
    <Card title={title} actions={<span class="figure">{newest === undefined ? "" : metricText(newest, unit)}</span>}>
      <div class="chart">
        {isEmpty ? (
          <p class="absent quiet">{absent?.reason ?? "There are no samples yet; the first arrives within a minute."}</p>
        ) : (
          <Lines {...{ columns, unit, title, range, markers, thresholds, onZoom }} />
        )}
      </div>
      <p class="key quiet">
        {columns.nodes.map((node) => (
          <span key={node}>
            <i aria-hidden="true" />
            {node}
          </span>
        ))}
        {thresholds.map(({ text }) => (
          <span key={text}>
            <i class="threshold" aria-hidden="true" />
            {text}
          </span>
        ))}
      </p>
      {!isEmpty && (
        <details>
          <summary>Table</summary>
          <div class="scroll values" tabIndex={0} role="group" aria-label={`${title}, newest values`}>
            <Table
              title={title}
              entries={rowsOf(series)}
              keyOf={({ time, node }) => `${time} ${node}`}
              columns={[
                ["Time", ({ time }) => new Date(time * 1_000).toLocaleString("en", { hourCycle: "h23" })],
                ["Node", ({ node }) => columns.nodes[node]],
                ["Average", ({ average }) => <span class="number">{average}</span>],
                ["Minimum", ({ minimum }) => <span class="number">{minimum}</span>],
                ["Maximum", ({ maximum }) => <span class="number">{maximum}</span>],
              ]}
            />
          </div>
        </details>
      )}
    </Card>
  );
}

interface LinesProps extends Required<Pick<ChartProps, "title" | "range" | "markers" | "thresholds">> {
  readonly columns: ChartColumns;
  readonly unit: string;
  readonly onZoom: ChartProps["onZoom"];
}

function Lines({ columns, unit, title, range, markers, thresholds, onZoom }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const newest = useRef({ range, markers, thresholds, onZoom });
  newest.current = { range, markers, thresholds, onZoom };
  const data: uPlot.AlignedData = [columns.times, ...columns.values];
  const shape = `${theme.value} ${columns.nodes.join()} ${unit} ${onZoom !== undefined}`;
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const options = optionsFor(element, {
      nodes: columns.nodes,
      unit,
      height,
      overlay: () => newest.current,
      onSelect: onZoom && ((selected) => newest.current.onZoom?.(widened(selected))),
    });
    const created = new uPlot(options, data, element);
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = undefined;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [columns, range.from, range.to, markers, thresholds]);
  const last = columns.values[0]?.at(-1);
  const text = last == null ? title : `${title}: ${metricText(last, unit)} at last`;
  return <div ref={frame} role="img" aria-label={text} />;
}
