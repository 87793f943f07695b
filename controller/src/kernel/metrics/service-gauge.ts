/** A gauge of a service that a system computes, besides the metrics of its machines. Read at each scrape. */
export interface ServiceGauge {
  /** Name without the prefix `holdfast_`; it ends with the unit. */
  readonly name: string;
  readonly help: string;
  /** Names of labels besides the labels that identify the service. */
  readonly labels: readonly string[];
  /** The values of one service, each with its labels; may be empty. */
  read(serviceId: string): Iterable<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }>;
}

/** The service gauges of all systems, in the order in which the systems were opened. */
export interface ServiceGauges {
  add(gauge: ServiceGauge): void;
  list(): readonly ServiceGauge[];
}

export function createServiceGauges(): ServiceGauges {
  const gauges: ServiceGauge[] = [];
  return {
    add: (gauge) => {
      gauges.push(gauge);
    },
    list: () => gauges,
  };
}

/** Number of items of each key. */
export function countBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, number> {
  const groups = Map.groupBy(items, keyOf);
  return new Map([...groups].map(([key, group]) => [key, group.length]));
}
