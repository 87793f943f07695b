/** Accepted requests for one service: its expected state at the end. */
export interface RequestedService {
  readonly id: string;
  readonly name: string;
  readonly engine: "postgresql" | "valkey";
  readonly hostname: string;
  readonly nodeIds: readonly string[];
  desired: "Running" | "Stopped" | "deleted";
  tags: Readonly<Record<string, string>>;
  allowedCidrs: readonly string[];
  readonly users: Set<string>;
  /** True if the service was deleted without retained data. */
  isPermanent?: boolean;
}

/** All requests of one run, by service. */
export interface RequestLog {
  readonly services: RequestedService[];
  /** Services that were not deleted. */
  living(): RequestedService[];
}

export function createRequestLog(): RequestLog {
  const services: RequestedService[] = [];
  return { services, living: () => services.filter(({ desired }) => desired !== "deleted") };
}
