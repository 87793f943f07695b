import type uPlot from "uplot";
import { metricText } from "../format.ts";
import type { ChartMarker, ChartRange, ChartThreshold } from "./chart-overlay.ts";

/** Lines of nodes differ by color and by dash. */
const dashes = [[], [8, 4], [2, 4]];

/** Least distance of two labels of markers, in CSS pixels. */
const labelWidth = 18;

interface PlotSettings {
  readonly nodes: readonly string[];
  readonly unit: string;
  readonly height: number;
  /** The newest period, markers and thresholds, which are drawn without a new plot. */
  readonly overlay: () => {
    readonly range: ChartRange;
    readonly markers: readonly ChartMarker[];
    readonly thresholds: readonly ChartThreshold[];
  };
  /** Called with the period that the user selects by dragging; absent for a plot without a zoom. */
  readonly onSelect: ((range: ChartRange) => void) | undefined;
}

/** Options of a plot, with the colors of the theme of its element. */
export function optionsFor(
  element: HTMLElement,
  { nodes, unit, height, overlay, onSelect }: PlotSettings,
): uPlot.Options {
  const styles = getComputedStyle(element);
  const probe = document.createElement("i");
  element.append(probe);
  // A canvas has no custom properties, and light-dark() is resolved in a color only.
  const color = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const [line, text, bad] = [color("--line"), color("--text-2"), color("--bad")];
  const strokes = [1, 2, 3].map((index) => color(`--series-${index}`));
  probe.remove();
  const font = `12px ${styles.fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    cursor: {
      sync: { key: "charts" },
      points: { show: false },
      drag: { x: onSelect !== undefined, y: false, setScale: false },
    },
    legend: { show: false },
    scales: {
      x: { range: () => [overlay().range.from, overlay().range.to] },
      y: {
        range: (_, minimum, maximum) =>
          rangeOf(minimum, Math.max(maximum, ...overlay().thresholds.map(({ value }) => value)), unit),
      },
    },
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
    hooks: {
      draw: [
        (plot) => {
          for (const { value } of overlay().thresholds) drawThreshold(plot, value, bad);
          drawMarkers(plot, overlay().markers, text, font);
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          const range = { from: plot.posToVal(left, "x"), to: plot.posToVal(left + width, "x") };
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          onSelect?.(range);
        },
      ],
    },
  };
}

function drawThreshold({ ctx, bbox, valToPos }: uPlot, value: number, color: string): void {
  const y = Math.round(valToPos(value, "y", true));
  if (y < bbox.top || y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

/** Draws lines of markers. Markers beside each other share one label, such as "2, 3". */
function drawMarkers(
  { ctx, bbox, valToPos }: uPlot,
  markers: readonly ChartMarker[],
  color: string,
  font: string,
): void {
  const labels: { readonly x: number; text: string }[] = [];
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { time, number } of markers) {
    const x = Math.round(valToPos(time, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const last = labels.at(-1);
    if (last !== undefined && x - last.x < labelWidth * devicePixelRatio) last.text += `, ${number}`;
    else labels.push({ x, text: String(number) });
  }
  ctx.font = font.replace("12px", `${11 * devicePixelRatio}px`);
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  for (const { x, text } of labels) ctx.fillText(text, x, bbox.top);
  ctx.restore();
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
