import { createAppWorkload } from "./app/app-workload.ts";
import { createEngineWorkload, type EngineWorkloadDeps } from "./engine/engine-workload.ts";
import type { CreateWorkload, WorkloadKind, WorkloadKinds } from "./workload.ts";

/** The workloads of a released agent. A kind of the proto that this map lacks does not compile. */
export function workloadKinds(engine: EngineWorkloadDeps): WorkloadKinds {
  return {
    engine: (shared) => createEngineWorkload(shared, engine),
    app: createAppWorkload,
  } satisfies Record<Exclude<WorkloadKind, "fixture">, CreateWorkload>;
}
