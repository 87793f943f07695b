/** A system's metric of a service besides those of its machines, read from memory when it is asked for. */
export interface ServiceFigure {
  /** Without the prefix `holdfast_`; a unit at its end. */
  readonly name: string;
  readonly help: string;
  /** Names of labels besides those that name the service. */
  readonly labels: readonly string[];
  /** The values of one service, each with its labels; may be empty. */
  read(serviceId: string): Iterable<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }>;
}

/** The figures of all systems, in the order in which these were opened. */
export interface ServiceFigures {
  add(figure: ServiceFigure): void;
  list(): readonly ServiceFigure[];
}

export function createServiceFigures(): ServiceFigures {
  const figures: ServiceFigure[] = [];
  return {
    add: (figure) => {
      figures.push(figure);
    },
    list: () => figures,
  };
}

/** How many there are under each key. */
export function countBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, number> {
  const groups = Map.groupBy(items, keyOf);
  return new Map([...groups].map(([key, group]) => [key, group.length]));
}
