/** Which node of which service something is of. */
export interface Origin {
  readonly serviceId: string;
  readonly serviceName: string;
  readonly dbType: string;
  readonly nodeId: string;
}

/** One value of one metric. */
export interface MetricItem {
  readonly origin: Origin;
  /** As the catalog of metrics has it. */
  readonly metric: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
}

/** One entry of an engine's log, with the lines that continue it. */
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

/** Labels, tags or dimensions of an item, in order of their names. */
export function labelsOf({ dbType, nodeId, serviceId, serviceName }: Origin) {
  return [
    ["db_type", dbType],
    ["node_id", nodeId],
    ["service_id", serviceId],
    ["service_name", serviceName],
  ] as const;
}
