/** Origin and time, the fields that samples and log entries share. */
export type ExportItem = Pick<MetricItem, "origin" | "timeMs">;

/** The service and node that an item comes from. */
export interface Origin {
  readonly serviceId: string;
  readonly serviceName: string;
  readonly dbType: string;
  readonly nodeId: string;
}

/** One value of one metric. */
export interface MetricItem {
  readonly origin: Origin;
  /** Name of the metric in the catalog. */
  readonly metric: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
}

/** One entry of an engine's log, with its continuation lines. */
export interface LogItem {
  readonly origin: Origin;
  readonly level: ExportedLevel;
  readonly message: string;
  readonly component: string;
  readonly role: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
}

export const exportedLevels = ["debug", "info", "warn", "error"] as const;
export type ExportedLevel = (typeof exportedLevels)[number];

/** Labels of an item, sorted by name. */
export function labelsOf({ dbType, nodeId, serviceId, serviceName }: Origin) {
  return [
    ["db_type", dbType],
    ["node_id", nodeId],
    ["service_id", serviceId],
    ["service_name", serviceName],
  ] as const;
}
