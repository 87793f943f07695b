import type { LogItem, MetricItem } from "@holdfast/controller/export/export-item.ts";
import type { ReadItem } from "./export-readers.ts";

/** Two services of one node each. */
export const exportOrigins = ["a", "b"].map((name) => ({
  serviceId: `service-${name}`,
  serviceName: name,
  dbType: "postgresql",
  nodeId: `node-${name}`,
}));

/**
 * `count` samples of each origin from ten minutes before, one of both metrics each 15 s; some destinations have a
 * resolution of one second.
 */
export function exportSamples(count: number, nowMs: number): MetricItem[] {
  return exportOrigins.flatMap((origin) =>
    Array.from({ length: count }, (_, index) => ({
      origin,
      metric: index % 2 === 0 ? "cpu" : "memory",
      value: index + 0.5,
      timeMs: nowMs - 600_000 + Math.floor(index / 2) * 15_000,
    })),
  );
}

/** `count` entries of each origin, a second apart, with characters that some formats escape. */
export function exportEntries(count: number, nowMs: number): LogItem[] {
  return exportOrigins.flatMap((origin) =>
    Array.from({ length: count }, (_, index) => ({
      origin,
      level: (["debug", "info", "warn", "error"] as const)[index % 4] ?? "info",
      message: `entry ${index}\nwith "quotes", \t and ünïcode`,
      component: "postgresql",
      role: "primary",
      timeMs: nowMs - 600_000 + index * 1_000,
    })),
  );
}

/** Identity of an item, here and as it was read at its destination. */
export function readKey({ name, value, timeMs, nodeId }: Omit<ReadItem, "serviceId" | "stream">): string {
  return `${nodeId} ${name} ${timeMs} ${value}`;
}

export function sampleKey({ metric, value, timeMs, origin: { nodeId } }: MetricItem): string {
  return readKey({ name: metric, value, timeMs, nodeId });
}

export function entryKey({ message, timeMs, origin: { nodeId } }: LogItem): string {
  return readKey({ name: "log", value: message, timeMs, nodeId });
}
