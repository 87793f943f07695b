/** What was asked of one service and accepted: what must be true of it in the end. */
export interface AskedService {
  readonly id: string;
  readonly name: string;
  readonly engine: "postgresql" | "valkey";
  readonly hostname: string;
  readonly nodeIds: readonly string[];
  wanted: "Running" | "Stopped" | "gone";
  tags: Readonly<Record<string, string>>;
  allowedCidrs: readonly string[];
  readonly users: Set<string>;
  /** Deleted so that it cannot come back: nothing of it is kept. */
  isForGood?: boolean;
}

/** Everything that was asked for in one run, by service. */
export interface Asked {
  readonly services: AskedService[];
  /** Those that were not asked to go. */
  living(): AskedService[];
}

export function createAsked(): Asked {
  const services: AskedService[] = [];
  return { services, living: () => services.filter(({ wanted }) => wanted !== "gone") };
}
