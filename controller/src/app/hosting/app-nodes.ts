import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import { evictsNodes } from "#fleet/host/host.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { MachineState } from "#fleet/machine/machine-lifecycle.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import { appKind } from "../app/app.ts";
import type { HostedApp } from "./hosted-app.ts";
import { appSoftware } from "./hosting.ts";
import type { ObservedNode } from "./observed-node.ts";

/** The machines of hosted apps. */
export interface AppNodes {
  /** Every machine of the app, also those that are being deleted. */
  machinesOf(appId: string): Stored<MachineObject>[];
  observe(machineId: string): ObservedNode;
  /** The first reason that the machines give for a delay; undefined without one. */
  reasonOf(nodes: readonly ObservedNode[]): string | undefined;
}

const gib = 1024 ** 3;
/** States in which a machine does not run. One that has failed, or whose host is silent, may run. */
const downStates: ReadonlySet<MachineState> = new Set(["pending", "creating", "stopped"]);

/** Reason for which a machine does not serve: that of its state, or of its first check that is unhealthy. */
function reasonIn(instance: InstanceObservation | undefined): { readonly reason?: string } {
  const check = instance?.checks.find(({ status }) => status === "unhealthy");
  const reason = instance?.state === "running" ? (check?.reason ?? "") : (instance?.reason ?? "");
  return reason === "" ? {} : { reason };
}

export function createAppNodes({
  fleet,
  machines,
  hosts,
}: Pick<FleetSystem, "machines" | "hosts"> & {
  readonly fleet: Pick<FleetSystem["fleet"], "session" | "observation">;
}): AppNodes {
  return {
    machinesOf: (appId) =>
      [...machines.values()].filter(
        ({ object: { spec } }) => spec.owner?.kind === appKind.name && spec.owner.id === appId,
      ),
    observe(id) {
      const machine = machines.get(id)?.object;
      const session = fleet.session(id);
      const instance = fleet.observation(id)?.instance;
      const isAbsent = machine === undefined || machine.metadata.deletionRequestedAt !== undefined;
      const host = hosts.get(machine?.spec.hostId ?? "")?.object;
      const isLeaving = host !== undefined && evictsNodes(host);
      return {
        id,
        presence: isAbsent ? "absent" : isLeaving ? "leaving" : "present",
        hasSession: session !== undefined,
        isDown: machine !== undefined && downStates.has(machine.status.state),
        isHealthy:
          session !== undefined &&
          instance?.state === "running" &&
          instance.checks.every(({ status }) => status !== "unhealthy"),
        isStopped: instance?.state === "stopped",
        ...(session !== undefined && reasonIn(instance)),
        report: instance && { generation: Number(instance.generation), app: instance.app },
      };
    },
    reasonOf: (nodes) =>
      nodes
        .flatMap(({ id, report }) => [
          machines.get(id)?.object.status.reason ?? "",
          ...(report?.app?.releases.map(({ reason }) => reason) ?? []),
        ])
        .find((reason) => reason !== ""),
  };
}

/** A new machine of the app. */
export function newAppMachine(
  { metadata: { id: appId, name, organizationId }, spec: { hosting } }: HostedApp,
  id: string,
  catalog: CatalogData,
  now: number,
): MachineObject {
  const { vcpu, memoryGb, rootGb } = planOf(catalog, hosting.planName);
  return {
    metadata: newMetadata(id, now, { name, organizationId }),
    spec: {
      owner: { kind: appKind.name, id: appId },
      software: appSoftware,
      image: "",
      vcpu,
      memoryBytes: memoryGb * gib,
      rootBytes: rootGb * gib,
      diskBytes: hosting.storageSizeGb * gib,
      zone: hosting.zone,
      hostId: null,
      storageTier: hosting.storageTier,
      apart: "preferred",
      power: "on",
      serverNames: [],
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}
