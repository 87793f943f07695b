import { create } from "@bufbuild/protobuf";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { RestoreSource } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { DrillObject } from "./drill.ts";
import { generationOf } from "./drill-plan.ts";

const gib = 1024 ** 3;

/**
 * Pure: the machine of a drill, as large as the service's. Nobody finds it by name and no rule lets anybody reach it: it is no
 * service's. Its engine's certificate names what no name server answers.
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
      engine: source.databaseType,
      version: source.version,
      // As a restore: the newest one that there is.
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

/** Pure: what its agent is to run: the data of the restore that the drill is at, examined, with nobody admitted. */
export function instanceOf(
  drill: DrillObject,
  machine: MachineObject,
  source: RestoreSource,
  catalog: CatalogData,
): InstanceSpec {
  const { databaseType, version, planName, storageSizeGb, parameters } = drill.spec.source;
  const plan = planOf(catalog, planName);
  const { address, publicAddress } = machine.status;
  const port = engineOf(databaseType)?.port ?? 0;
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
    storageBytes: BigInt(storageSizeGb * gib),
    parameters: { ...parameters },
    address,
    port,
    listeners: [
      { name: "engine", address, port, audience: "private" },
      { name: "engine", address: publicAddress, port, audience: "public" },
    ],
    source: { ...source, examine: true },
  });
}
