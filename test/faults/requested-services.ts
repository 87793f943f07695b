/** Accepted requests for one service: its expected state at the end. */
export interface RequestedService {
  readonly id: string;
  readonly name: string;
  readonly engine: "postgresql" | "valkey";
  readonly hostname: string;
  readonly nodeIds: readonly string[];
  desired: "Running" | "Stopped" | "gone";
  tags: Readonly<Record<string, string>>;
  allowedCidrs: readonly string[];
  readonly users: Set<string>;
  /** Deleted permanently: nothing of it is retained. */
  isForGood?: boolean;
}

/** All requests of one run, by service. */
export interface RequestLog {
  readonly services: RequestedService[];
  /** Services that were not deleted. */
  living(): RequestedService[];
}

export function createRequestLog(): RequestLog {
  const services: RequestedService[] = [];
  return { services, living: () => services.filter(({ desired }) => desired !== "gone") };
}
