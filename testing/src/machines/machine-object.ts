import { randomUUID } from "node:crypto";
import type { MachineObject, MachineSpecObject } from "@holdfast/controller/fleet/machine/machine.ts";

const gib = 1024 ** 3;

/** A desired machine that is not placed yet. Its owner is a new service, unless the spec has another owner. */
export function machineObject(spec: Partial<MachineSpecObject> = {}): MachineObject {
  const id = randomUUID();
  return {
    metadata: { id, name: id, organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 },
    spec: {
      owner: { kind: "managed-service", id: `s-${id}` },
      software: { name: "postgresql", version: "17" },
      image: "",
      vcpu: 1,
      memoryBytes: gib,
      rootBytes: 4 * gib,
      diskBytes: gib,
      zone: "local",
      hostId: null,
      storageTier: "maxiops",
      apart: "preferred",
      power: "on",
      serverNames: [],
      ...spec,
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}

/** A machine that runs on its host. */
export function runningMachine(id: string, spec: Partial<MachineSpecObject>, address = "127.98.0.1"): MachineObject {
  const { metadata, ...rest } = machineObject(spec);
  const status = { ...rest.status, state: "running", address, publicAddress: address } as const;
  return { ...rest, metadata: { ...metadata, id, name: id }, status };
}
