import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";

/** How long an agent may take for one convergence before it is asked again. */
const deliveryTimeoutMs = 60_000;

/**
 * Brings instance specs to agents. The spec is desired state that anybody can derive from the store again, so nothing of
 * a delivery is stored: the reconciler asks until the machine reports the generation.
 */
export interface InstanceDelivery {
  /** Starts a delivery unless this very one is under way. What came of it shows in the machine's observation. */
  deliver(machineId: string, spec: InstanceSpec): void;
}

export function createInstanceDelivery({ fleet, log }: { fleet: Fleet; log: Log }): InstanceDelivery {
  const underWay = new Map<string, string>();

  async function run(machineId: string, spec: InstanceSpec): Promise<void> {
    const request = {
      ownerId: spec.serviceId,
      generation: Number(spec.generation),
      term: Number(spec.term),
      lane: "control",
      input: { case: "convergeInstance", value: { $typeName: "holdfast.agent.v1.ConvergeInstance", instance: spec } },
      deadlineMs: deliveryTimeoutMs,
    } as const;
    const result = await fleet.run(machineId, request, deliveryTimeoutMs);
    if (result.failure !== undefined) {
      const { code, message } = result.failure;
      log.warn("instance not converged", { service: spec.serviceId, machine: machineId, code, reason: message });
    }
  }

  return {
    deliver(machineId, spec) {
      const boot = fleet.session(machineId)?.bootId ?? "";
      const label = `${spec.generation} ${spec.running} ${boot}`;
      if (underWay.get(machineId) === label) return;
      underWay.set(machineId, label);
      run(machineId, spec)
        .catch((error: unknown) => {
          const reason = HoldfastError.from(error).key;
          log.info("instance not delivered", { service: spec.serviceId, machine: machineId, reason });
        })
        .finally(() => {
          if (underWay.get(machineId) === label) underWay.delete(machineId);
        });
    },
  };
}
