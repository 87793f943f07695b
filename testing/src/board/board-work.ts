import { create } from "@bufbuild/protobuf";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { FleetSystem } from "@holdfast/controller/fleet/fleet-system.ts";
import { evictsNodes } from "@holdfast/controller/fleet/host/host.ts";
import { machineKind, type MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { again, type ReconcileOutcome, settled } from "@holdfast/controller/kernel/runtime/reconciler.ts";
import type { ControlLoop } from "@holdfast/controller/kernel/runtime/runner.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { createWorkloadDelivery } from "@holdfast/controller/fleet/task/workload-delivery.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type Board, boardKind } from "./board.ts";

interface BoardWorkDeps
  extends Pick<Kernel, "begin" | "clock" | "newId" | "log">,
    Pick<FleetSystem, "fleet" | "machines" | "hosts" | "zone" | "domain"> {
  readonly boards: Collection<Board>;
}

const gib = 1024 ** 3;
const recheckMs = 250;

/** The software of boards' machines. */
const software = { name: "valkey", version: "8.1" };
/** Term and generation of a board's instance, which has one member and never changes. */
export const boardInstance = { generation: 1, term: 1 };

/**
 * Gives each board one machine with a name and an engine, on a host that is not being vacated, and deletes it with the
 * board. Key: id of the board.
 */
export function createBoardWork(deps: BoardWorkDeps): ControlLoop {
  const { boards, machines, hosts, zone, begin, clock } = deps;
  const delivery = createWorkloadDelivery(deps);

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const board = await boards.getCurrent(id, signal);
    if (board === undefined) return settled;
    const owner = { kind: boardKind.name, id };
    const boardMachines = [...machines.values()].filter(({ object }) => isOwnedBy(object, id));
    const lasting = boardMachines.filter(({ object: { metadata, spec } }) => {
      const host = hosts.get(spec.hostId ?? "")?.object;
      return metadata.deletionRequestedAt === undefined && (host === undefined || !evictsNodes(host));
    });
    const running = lasting.filter(({ object }) => object.status.state === "running");
    const isDeleted = board.object.metadata.deletionRequestedAt !== undefined;
    const superfluous = isDeleted
      ? boardMachines
      : running.length > 0
        ? boardMachines.filter((each) => !running.includes(each))
        : [];

    const unit = begin();
    const deleted = superfluous.filter(({ object }) => object.metadata.deletionRequestedAt === undefined);
    for (const machine of deleted) {
      const metadata = { ...machine.object.metadata, deletionRequestedAt: clock.now() };
      unit.update(machineKind, machine, { ...machine.object, metadata });
    }
    const isRemoved = isDeleted && boardMachines.length === 0;
    if (isRemoved) unit.remove(boardKind, board);
    const isCreated = !isDeleted && lasting.length === 0;
    if (isCreated) unit.create(machineKind, machineOf(board.object, deps));
    const addresses = isDeleted ? [] : running.map(({ object }) => object.status.address);
    const isRenamed = isDeleted
      ? zone.remove(unit, owner)
      : addresses.length > 0 && zone.put(unit, owner, [{ name: `${id}.${deps.domain}`, addresses, ttlS: 5 }]);
    for (const { object } of running) {
      const { metadata } = object;
      if (deps.fleet.session(metadata.id) === undefined || deps.fleet.observation(metadata.id) !== undefined) continue;
      delivery.deliver(metadata.id, { workload: { case: "engine", value: instanceOf(object, id) } });
    }
    // A transaction without a change is rejected.
    if (deleted.length > 0 || isRemoved || isCreated || isRenamed) {
      const revision = await unit.commit(signal);
      await Promise.all([machines, boards].map((each) => each.untilRevision(revision, 1_000)));
    }
    return again(recheckMs, "machines and hosts");
  }

  return {
    reconciler: { name: "board", reconcile },
    keys: () => boards.ids(),
    subscribe: (onChange) => boards.subscribe(onChange),
    // Machines and hosts change without the board.
    inputs: () => clock.now(),
  };
}

/** True if the machine belongs to the board. */
export function isOwnedBy({ spec: { owner } }: MachineObject, boardId: string): boolean {
  return owner?.kind === boardKind.name && owner.id === boardId;
}

function machineOf({ metadata, spec: { zone } }: Board, { newId, clock, domain }: BoardWorkDeps): MachineObject {
  const { id, name, organizationId } = metadata;
  return {
    metadata: newMetadata(newId(), clock.now(), { name, organizationId }),
    spec: {
      owner: { kind: boardKind.name, id },
      software,
      image: "",
      vcpu: 1,
      memoryBytes: gib,
      rootBytes: gib,
      diskBytes: gib,
      zone,
      hostId: null,
      storageTier: "maxiops",
      apart: "preferred",
      power: "on",
      serverNames: [`${id}.${domain}`],
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}

/** The engine on a board's machine. */
function instanceOf({ metadata, spec, status }: MachineObject, boardId: string): InstanceSpec {
  const port = engineOf(software.name)?.port ?? 0;
  return create(InstanceSpecSchema, {
    serviceId: boardId,
    nodeId: metadata.id,
    engine: software.name,
    version: software.version,
    generation: BigInt(boardInstance.generation),
    term: BigInt(boardInstance.term),
    running: true,
    vcpu: spec.vcpu,
    memoryBytes: BigInt(spec.memoryBytes),
    storageBytes: BigInt(spec.diskBytes),
    address: status.address,
    port,
    listeners: [{ name: "engine", address: status.address, port, audience: "private" }],
  });
}
