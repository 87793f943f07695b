import { create } from "@bufbuild/protobuf";
import { defaultDatabase } from "@holdfast/common/engine-catalogue/default-names.ts";
import { EngineUserSchema, type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type CatalogData, planOf } from "../catalog/catalog.ts";
import type { DatabaseUserObject } from "../database-user/database-user.ts";
import type { MachineStatus } from "../machine/machine.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";

const gib = 1024 ** 3;

/** Pure: all that the agent of one node needs to run its engine alone. */
export function instanceSpecOf(args: {
  service: ManagedServiceObject;
  node: NodeSpec;
  /** By which its machine is reached. */
  addresses: Pick<MachineStatus, "address" | "publicAddress">;
  users: readonly DatabaseUserObject[];
  catalog: CatalogData;
  running: boolean;
  generation: number;
}): InstanceSpec {
  const { service, node, addresses, users, catalog, running, generation } = args;
  const { spec } = service;
  const plan = planOf(catalog, spec.planName);
  return create(InstanceSpecSchema, {
    serviceId: service.metadata.id,
    nodeId: node.id,
    engine: spec.databaseType,
    version: spec.version,
    generation: BigInt(generation),
    term: BigInt(service.status.term),
    running,
    vcpu: plan.vcpu,
    memoryBytes: BigInt(plan.memoryGb * gib),
    storageBytes: BigInt(spec.storageSizeGb * gib),
    parameters: { ...spec.parameters },
    allowedCidrs: spec.trial ? [] : [...spec.allowedCidrs],
    address: addresses.address,
    port: spec.port,
    listeners: [
      { name: "engine", address: addresses.address, port: spec.port, audience: "private" },
      { name: "engine", address: addresses.publicAddress, port: spec.port, audience: "public" },
    ],
    users: users.map(({ spec: user }) =>
      create(EngineUserSchema, { username: user.username, role: user.role, verifier: user.verifier }),
    ),
    restartCount: BigInt(spec.restartCount),
    databases: spec.databaseType === "postgresql" ? [defaultDatabase] : [],
  });
}
