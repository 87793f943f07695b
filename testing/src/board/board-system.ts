import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type FleetSystem, fleetPart } from "@holdfast/controller/fleet/fleet-system.ts";
import { hostOfMachine, machineKind, type MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { networkPolicies, type PolicySource } from "@holdfast/controller/fleet/network-policy/policy-source.ts";
import { type MonitoredOwner, monitoringOf } from "@holdfast/controller/fleet/owner/monitored-owner.ts";
import { type OwnerKind, ownerKinds } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import {
  type SampleSink,
  sampleSinkPart,
  type StoredSamples,
  storedSamplesPart,
} from "@holdfast/controller/fleet/session/sample-sink.ts";
import type { Use } from "@holdfast/controller/kernel/assembly.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { type Contribution, definePart } from "@holdfast/controller/kernel/part.ts";
import { declareSystem } from "@holdfast/controller/kernel/system-declaration.ts";
import type { System } from "@holdfast/controller/kernel/system.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { operationSubjects } from "@holdfast/controller/operation/operation.ts";
import { HealthStatus } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { systems } from "@holdfast/controller/systems.ts";
import { type Board, boardKind, boardPort } from "./board.ts";
import { boardInstance, createBoardWork, isOwnedBy } from "./board-work.ts";

/** Internals of the controller, for tests of boards. */
export interface BoardSystem extends Pick<Kernel, "begin" | "clock" | "newId"> {
  readonly boards: Collection<Board>;
  readonly fleet: FleetSystem;
  readonly samples: StoredSamples;
  readonly sink: SampleSink;
  readonly policy: PolicySource;
}

const boardsPart = definePart<BoardSystem>("boards");

/** The list of systems with boards, which own machines and are not services. `opened` receives the internals. */
export function systemsWithBoards(opened: (inside: BoardSystem) => void) {
  const boardSystem = declareSystem({
    name: "board",
    provides: [boardsPart],
    events: {
      "board.health_changed": {
        when: "a board's health has a new status",
        data: {
          service_id: { type: "uuid", meaning: "the board" },
          from: { type: "string", meaning: "the status before" },
          to: { type: "string", meaning: "the new status" },
        },
        example: { service_id: "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90", from: "healthy", to: "degraded" },
      },
    },
    scopes: { boards: { verbs: ["read"], completeFrom: "developer" } },
    contribute: contributeBoards,
    open(kernel, use) {
      const { system, inside } = openBoardSystem(kernel, use);
      opened(inside);
      return system;
    },
  });
  return [...systems, boardSystem] as const;
}

function contributeBoards(kernel: Kernel): readonly Contribution[] {
  const boards = kernel.collections.open(boardKind);
  const machines = kernel.collections.open(machineKind);
  return [
    ownerKinds.of(createBoardOwners(boards, machines)),
    networkPolicies.of(createBoardPolicy(kernel)),
    operationSubjects.of({ kind: boardKind.name, get: (id) => boards.get(id) }),
  ];
}

function createBoardOwners(boards: Collection<Board>, machines: Collection<MachineObject>): OwnerKind {
  return {
    kind: boardKind.name,
    noun: "board",
    remedy: "Wipe",
    describe(id) {
      const board = boards.get(id)?.object;
      return board && { name: board.metadata.name, organizationId: board.metadata.organizationId };
    },
    isReplaceable: () => true,
    onHostLost: () => "deletes",
    drain: (_, { hasOthers }) => ({
      outcome: "moves",
      reason: hasOthers ? "Its other machine starts." : "Its board gets another machine.",
    }),
    monitoring: monitoringOf(boards, {
      noun: "board",
      readScope: "boards:read",
      pathSegment: "boards",
      healthEvent: "board.health_changed",
      defaultRules: ["disk", "health"],
      owner: (board) => monitoredBoard(board, machines),
      health: ({ metadata }) => ({ status: HealthStatus.HEALTHY, since: timestampFromMs(metadata.createdAt) }),
    }),
  };
}

function monitoredBoard({ metadata }: Board, machines: Collection<MachineObject>): MonitoredOwner {
  const boardMachines = [...machines.values()].filter(({ object }) => isOwnedBy(object, metadata.id));
  return {
    owner: { kind: boardKind.name, id: metadata.id },
    noun: "board",
    name: metadata.name,
    organizationId: metadata.organizationId,
    software: boardKind.name,
    machines: boardMachines.map(({ object }) => ({
      id: object.metadata.id,
      role: "primary",
      isExpected: object.status.state === "running",
    })),
    mainMachineId: boardMachines[0]?.object.metadata.id,
    suspension: metadata.deletionRequestedAt === undefined ? undefined : "deleted",
    startedAt: 0,
    ...boardInstance,
  };
}

/** Network policy by which clients of this host reach the machines of boards. */
function createBoardPolicy({ collections }: Kernel): PolicySource {
  const machines = collections.open(machineKind);
  return {
    name: boardKind.name,
    rulesOn: (hostId) =>
      machines.by(hostOfMachine, hostId).flatMap(({ object: { spec, status } }) => {
        const { owner } = spec;
        if (owner?.kind !== boardKind.name || status.address === "") return [];
        return [{ owner, to: status.address, port: boardPort, from: ["127.0.0.0/8"] }];
      }),
    subscribe: (onChange) => machines.subscribe(() => onChange()),
  };
}

function openBoardSystem(kernel: Kernel, use: Use): { system: System; inside: BoardSystem } {
  const boards = kernel.collections.open(boardKind);
  const fleet = use(fleetPart);
  const inside = {
    ...kernel,
    boards,
    fleet,
    samples: use(storedSamplesPart),
    sink: use(sampleSinkPart),
    policy: createBoardPolicy(kernel),
  };
  return {
    inside,
    system: {
      name: "board",
      provides: [boardsPart.of(inside)],
      work: [createBoardWork({ ...kernel, ...fleet, boards })],
      metrics: [{ name: "boards", help: "Boards of all organizations", read: () => boards.size }],
    },
  };
}
