/** A delivery of the peers, with the same members as Holdfast's. */
export interface BenchDelivery {
  readonly id: string;
  readonly secret: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export function bodyOf({ id, data }: BenchDelivery): string {
  return JSON.stringify({ id, event_type: "service.running", timestamp: new Date().toISOString(), data });
}

/** Data of an event of typical size; `n` identifies it. */
export function benchData(n: number): Record<string, unknown> {
  return {
    service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
    service_name: `orders-${n}`,
    database_type: "postgresql",
    status: "Running",
    n,
  };
}
