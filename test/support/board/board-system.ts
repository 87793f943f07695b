import { type FleetSystem, fleetPart } from "@holdfast/controller/fleet/fleet-system.ts";
import { hostOfMachine, machineKind } from "@holdfast/controller/fleet/machine/machine.ts";
import { networkPolicies, type PolicySource } from "@holdfast/controller/fleet/network-policy/policy-source.ts";
import { type OwnerKind, ownerKinds } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import { type StoredSamples, storedSamplesPart } from "@holdfast/controller/fleet/session/stored-samples.ts";
import type { Use } from "@holdfast/controller/kernel/assembly.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { type Contribution, definePart } from "@holdfast/controller/kernel/part.ts";
import { declareSystem } from "@holdfast/controller/kernel/system-declaration.ts";
import type { System } from "@holdfast/controller/kernel/system.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { systems } from "@holdfast/controller/systems.ts";
import { type Board, boardKind, boardPort } from "./board.ts";
import { createBoardWork } from "./board-work.ts";

/** The inside of the controller, for tests of boards. */
export interface BoardSystem extends Pick<Kernel, "begin" | "clock" | "newId"> {
  readonly boards: Collection<Board>;
  readonly fleet: FleetSystem;
  readonly samples: StoredSamples;
  readonly policy: PolicySource;
}

const boardsPart = definePart<BoardSystem>("boards");

/** The list of systems with boards, which own machines and are no services. `opened` receives the inside. */
export function systemsWithBoards(opened: (inside: BoardSystem) => void) {
  const boardSystem = declareSystem({
    name: "board",
    gives: [boardsPart],
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
  return [ownerKinds.of(createBoardOwners(boards)), networkPolicies.of(createBoardPolicy(kernel))];
}

function createBoardOwners(boards: Pick<Collection<Board>, "get">): OwnerKind {
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
  };
}

/** Clients of this host reach the machines of boards. */
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
    policy: createBoardPolicy(kernel),
  };
  return {
    inside,
    system: {
      name: "board",
      gives: [boardsPart.of(inside)],
      work: [createBoardWork({ ...kernel, ...fleet, boards })],
      metrics: [{ name: "boards", help: "Boards of all organizations", read: () => boards.size }],
    },
  };
}
