import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Metrics } from "@holdfast/sdk/responses.ts";
import { metricText } from "../format.ts";
import { Card } from "../parts/parts.tsx";
import { theme } from "../shell/theme.ts";
import { type ChartColumns, columnsOf, newestOf } from "./chart-view.ts";

const height = 200;
/** Lines of nodes differ by color and by dash. */
const dashes = [[], [8, 4], [2, 4]];

interface ChartProps {
  readonly title: string;
  readonly metric: string;
  readonly metrics: Metrics;
}

/** One metric of each node, as a line of averages with a band from minimum to maximum. */
export function Chart({ title, metric, metrics }: ChartProps) {
  const series = metrics.series.filter(({ metric: of }) => of === metric);
  const unit = series[0]?.unit ?? "count";
  const newest = newestOf(series);
  const columns = columnsOf(series, metrics.resolution);
  const absent = metrics.absent.find(({ metric: of }) => of === metric);
  return (
    <Card title={title} actions={<span class="figure">{newest === undefined ? "" : metricText(newest, unit)}</span>}>
      <div class="chart">
        {columns.times.length === 0 ? (
          <p class="absent quiet">{absent?.reason ?? "There are no samples yet; the first arrives within a minute."}</p>
        ) : (
          <Lines columns={columns} unit={unit} title={title} />
        )}
      </div>
      <p class="key quiet">
        {columns.nodes.map((node) => (
          <span key={node}>
            <i aria-hidden="true" />
            {node}
          </span>
        ))}
      </p>
    </Card>
  );
}

interface LinesProps {
  readonly columns: ChartColumns;
  readonly unit: string;
  readonly title: string;
}

function Lines({ columns, unit, title }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data: uPlot.AlignedData = [columns.times, ...columns.values];
  const shape = `${theme.value} ${columns.nodes.join()} ${unit}`;
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const created = new uPlot(optionsFor(element, columns.nodes, unit), data, element);
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = undefined;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [columns]);
  const newest = columns.values[0]?.at(-1);
  const text = newest == null ? title : `${title}: ${metricText(newest, unit)} at last`;
  return <div ref={frame} role="img" aria-label={text} />;
}

function optionsFor(element: HTMLElement, nodes: readonly string[], unit: string): uPlot.Options {
  const styles = getComputedStyle(element);
  const probe = document.createElement("i");
  element.append(probe);
  // A canvas has no custom properties, and light-dark() is resolved in a color only.
  const color = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const [line, text] = [color("--line"), color("--text-2")];
  const strokes = [1, 2, 3].map((index) => color(`--series-${index}`));
  probe.remove();
  const font = `12px ${styles.fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    cursor: { sync: { key: "charts" }, points: { show: false } },
    legend: { show: false },
    scales: { y: { range: (_, minimum, maximum) => rangeOf(minimum, maximum, unit) } },
    axes: [
      { ...axis, values: (_, splits) => splits.map(clockText) },
      { ...axis, size: 68, values: (_, splits) => splits.map((value) => metricText(value, unit)) },
    ],
    series: [
      {},
      ...nodes.flatMap((node, index) => [
        { label: node, stroke: strokes[index % 3] ?? text, width: 2, dash: dashes[index % 3] ?? [], spanGaps: false },
        { label: `${node} maximum`, points: { show: false } },
        { label: `${node} minimum`, points: { show: false } },
      ]),
    ],
    bands: nodes.map((_, index) => ({
      series: [index * 3 + 2, index * 3 + 3],
      fill: faded(strokes[index % 3] ?? text),
    })),
  };
}

/** Range of the axis: from 0 to above the greatest value; for a percentage near 100, at least to 100. */
function rangeOf(minimum: number, maximum: number, unit: string): [number, number] {
  const top = Math.max(maximum * 1.15, unit === "percent" ? 10 : 1);
  return [Math.min(0, minimum), unit === "percent" && maximum <= 100 ? Math.min(100, top) : top];
}

/** A label of the time axis: the time of day, or the date at midnight. */
function clockText(seconds: number): string {
  const time = new Date(seconds * 1_000);
  const isMidnight = time.getHours() === 0 && time.getMinutes() === 0;
  if (isMidnight) return time.toLocaleDateString("en", { month: "short", day: "numeric" });
  return time.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

function faded(color: string): string {
  return color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)");
}
