import { DepGraph, DepGraphCycleError } from "dependency-graph";

/** What is to be ordered, by its name and the names that it needs. */
export interface Dependent {
  readonly name: string;
  readonly needs: readonly string[];
}

/** Pure: the path of a cycle, such as [a, b, a]; undefined where there is none. Names that nobody has are passed over. */
export function cycleOf(all: readonly Dependent[]): readonly string[] | undefined {
  try {
    graphOf(all).overallOrder();
    return undefined;
  } catch (error) {
    if (error instanceof DepGraphCycleError) return error.cyclePath;
    throw error;
  }
}

/** Pure: each after all that it needs. Throws for a cycle. */
export function inOrder<T extends Dependent>(all: readonly T[]): readonly T[] {
  const order = graphOf(all).overallOrder();
  const place = new Map(order.map((name, at) => [name, at]));
  return all.toSorted((a, b) => (place.get(a.name) ?? 0) - (place.get(b.name) ?? 0));
}

function graphOf(all: readonly Dependent[]): DepGraph<Dependent> {
  const graph = new DepGraph<Dependent>();
  for (const each of all) graph.addNode(each.name, each);
  for (const { name, needs } of all)
    for (const needed of needs) if (graph.hasNode(needed)) graph.addDependency(name, needed);
  return graph;
}
