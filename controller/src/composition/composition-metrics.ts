import type { ProcessGauge } from "#kernel/metrics/process-metrics.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { CompositionObject, Face } from "./composition.ts";

/** How many there are of each face, by state. */
export function compositionMetrics(
  compositions: Pick<Collection<CompositionObject>, "values">,
): readonly ProcessGauge[] {
  const byState = (face: Face) => {
    const counts = new Map<string, number>();
    for (const { object } of compositions.values())
      if (object.spec.face === face) counts.set(object.status.state, (counts.get(object.status.state) ?? 0) + 1);
    return { label: "state", values: counts };
  };
  return (["project", "stack", "pipeline"] as const).map((face) => ({
    name: `${face}s`,
    help: `${face[0]?.toUpperCase()}${face.slice(1)}s of all organizations`,
    read: () => byState(face),
  }));
}
