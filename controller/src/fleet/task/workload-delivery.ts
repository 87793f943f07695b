import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type ConvergeInstance,
  ConvergeInstanceSchema,
  type WorkloadSpec,
  WorkloadSpecSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "../fleet.ts";

/** Time that an agent may take to apply a spec before the delivery is repeated. */
const deliveryTimeoutMs = 60_000;

/**
 * Delivers the specs of workloads to agents. A spec is desired state that can be derived from the store at any time, so
 * no delivery is stored: the owner's reconciler repeats it until the machine reports the generation.
 */
export interface WorkloadDelivery {
  /** Starts a delivery unless the same one is in flight. Its effect appears in the machine's observation. */
  deliver(machineId: string, spec: MessageInitShape<typeof WorkloadSpecSchema>): void;
}

export function createWorkloadDelivery({
  fleet,
  log,
}: {
  readonly fleet: Pick<Fleet, "run" | "session">;
  readonly log: Log;
}): WorkloadDelivery {
  const inFlight = new Map<string, string>();

  async function run(machineId: string, spec: WorkloadSpec): Promise<void> {
    const value = convergence(spec, fleet.session(machineId)?.workloads ?? []);
    if (value === undefined) {
      log.warn("agent does not run this kind of workload", { machine: machineId, workload: spec.workload.case });
      return;
    }
    const { ownerId, generation, term } = commonOf(spec);
    const request = {
      ownerId,
      generation: Number(generation),
      term: Number(term),
      lane: "control",
      input: { case: "convergeInstance", value },
      deadlineMs: deliveryTimeoutMs,
    } as const;
    const result = await fleet.run(machineId, request, deliveryTimeoutMs);
    if (result.failure === undefined) return;
    const { code, message } = result.failure;
    log.warn("workload not converged", { owner: ownerId, machine: machineId, code, reason: message });
  }

  return {
    deliver(machineId, delivered) {
      const spec = create(WorkloadSpecSchema, delivered);
      const { ownerId, generation, running } = commonOf(spec);
      const bootId = fleet.session(machineId)?.bootId ?? "";
      const label = `${generation} ${running} ${bootId}`;
      if (inFlight.get(machineId) === label) return;
      inFlight.set(machineId, label);
      run(machineId, spec)
        .catch((error: unknown) => {
          const reason = HoldfastError.from(error).key;
          log.info("workload not delivered", { owner: ownerId, machine: machineId, reason });
        })
        .finally(() => {
          if (inFlight.get(machineId) === label) inFlight.delete(machineId);
        });
    },
  };
}

/** The fields that every kind of workload has; an engine has them in its instance spec. */
export function commonOf({ workload, ...common }: WorkloadSpec) {
  if (workload.case !== "engine") return common;
  const { serviceId, generation, term, running } = workload.value;
  return { ownerId: serviceId, generation, term, running };
}

/**
 * The message for an agent with these kinds of workloads. An agent that reports no kinds gets an engine in the field
 * `instance`. Undefined for a kind that the agent does not run: the agent has to be upgraded first.
 */
export function convergence(spec: WorkloadSpec, kinds: readonly string[]): ConvergeInstance | undefined {
  const { workload } = spec;
  if (kinds.includes(workload.case ?? "")) return create(ConvergeInstanceSchema, { workload: spec });
  return workload.case === "engine" ? create(ConvergeInstanceSchema, { instance: workload.value }) : undefined;
}
