import { randomUUID } from "node:crypto";
import type { MachineSpec } from "@holdfast/compute/compute-provider.ts";

const gib = 1024 ** 3;

/** A machine for PostgreSQL 17 with a disk of 1 GiB and a new id. */
export function testMachineSpec(overrides: Partial<MachineSpec> = {}): MachineSpec {
  return {
    id: `m-${randomUUID()}`,
    installationId: "test",
    plan: { vcpu: 1, memoryBytes: 2 * gib },
    diskBytes: gib,
    zone: "local",
    storageTier: "maxiops",
    engine: "postgresql",
    version: "17",
    ...overrides,
  };
}
