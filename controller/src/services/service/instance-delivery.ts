import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";

/** Time that an agent may take to apply a spec before the delivery is repeated. */
const deliveryTimeoutMs = 60_000;

/**
 * Delivers instance specs to agents. A spec is desired state that can be derived from the store at any time, so no
 * delivery is stored: the reconciler repeats it until the machine reports the generation.
 */
export interface InstanceDelivery {
  /** Starts a delivery unless the same one is in flight. Its result appears in the machine's observation. */
  deliver(machineId: string, spec: InstanceSpec): void;
}

export function createInstanceDelivery({ fleet, log }: { fleet: Fleet; log: Log }): InstanceDelivery {
  const inFlight = new Map<string, string>();

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
      if (inFlight.get(machineId) === label) return;
      inFlight.set(machineId, label);
      run(machineId, spec)
        .catch((error: unknown) => {
          const reason = HoldfastError.from(error).key;
          log.info("instance not delivered", { service: spec.serviceId, machine: machineId, reason });
        })
        .finally(() => {
          if (inFlight.get(machineId) === label) inFlight.delete(machineId);
        });
    },
  };
}
