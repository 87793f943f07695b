import { create } from "@bufbuild/protobuf";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { RestoreSource } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { enginePortOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { DrillObject } from "./drill.ts";
import { generationOf } from "./drill-plan.ts";

const gib = 1024 ** 3;

/**
 * The machine of a drill, initially with the service's size. It has no DNS name, and no network policy admits
 * connections. The engine's certificate has a name under `.invalid` (RFC 6761).
 */
export function machineOf(drill: DrillObject, id: string, catalog: CatalogData, now: number): MachineObject {
  const { source } = drill.spec;
  const plan = planOf(catalog, source.planName);
  const name = `${drill.metadata.id}.drill.invalid`;
  return {
    metadata: newMetadata(id, now, { name, organizationId: drill.metadata.organizationId }),
    spec: {
      owner: { kind: "drill", id: drill.metadata.id },
      ...(plan.kind === "virtual_machine" && { kind: plan.kind }),
      software: { name: source.databaseType, version: source.version },
      // The newest image, as in a restore.
      image: "",
      vcpu: plan.vcpu,
      memoryBytes: plan.memoryGb * gib,
      rootBytes: plan.rootGb * gib,
      diskBytes: source.storageSizeGb * gib,
      zone: source.zone,
      hostId: null,
      storageTier: source.storageTier,
      apart: "preferred",
      power: "on",
      serverNames: [name],
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}

/** The instance spec of a drill's machine: restore the current backup, examine the data, admit no clients. */
export function instanceOf(
  drill: DrillObject,
  machine: MachineObject,
  source: RestoreSource,
  catalog: CatalogData,
): InstanceSpec {
  const { databaseType, version, planName, storageSizeGb, parameters } = drill.spec.source;
  const plan = planOf(catalog, planName);
  const { address, publicAddress } = machine.status;
  const port = enginePortOf(databaseType) ?? 0;
  return create(InstanceSpecSchema, {
    serviceId: drill.metadata.id,
    nodeId: machine.metadata.id,
    engine: databaseType,
    version,
    generation: BigInt(generationOf(drill)),
    term: 1n,
    running: true,
    vcpu: plan.vcpu,
    memoryBytes: BigInt(plan.memoryGb * gib),
    recoveryMemoryBytes: BigInt(machine.spec.memoryBytes),
    storageBytes: BigInt(storageSizeGb * gib),
    parameters: { ...parameters },
    address,
    port,
    layoutMode: drill.spec.source.layoutMode ?? "",
    serverCollation: drill.spec.source.serverCollation ?? "",
    listeners: [
      { name: "engine", address, port, audience: "private" },
      { name: "engine", address: publicAddress, port, audience: "public" },
    ],
    source: { ...source, examine: true },
  });
}
