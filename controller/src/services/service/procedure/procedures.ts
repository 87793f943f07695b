import { lookUp } from "@holdfast/common/look-up.ts";
import type { OperationObject } from "#operation/operation.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import { maintenance } from "./maintenance.ts";
import { addNode, creation, failover, moveNode, removeNode } from "./nodes.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { resizing } from "./resizing.ts";
import { restarting } from "./restarting.ts";
import type { ServiceOperationType } from "../service-operations.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";

/** The last step removes the service and completes the operation in the same transaction. */
const deletion: Procedure = { ...convergeToSpec, progress: deletionProgress, isComplete: () => false };

function deletionProgress(_service: unknown, { nodes, names, awaitsFinalBackup }: ObservedService): StepProgress {
  if (names !== "absent") return { step: "RemoveDNS", progressPct: 20 };
  // The backup has a separate time limit.
  if (awaitsFinalBackup === true) return { step: "FinalBackup", progressPct: 30, waits: true };
  const remaining = nodes.filter(({ machine }) => machine !== undefined);
  if (remaining.length === 0) return { step: "RemoveRecords", progressPct: 90 };
  const [silent] = remaining.flatMap(({ silentHost }) => silentHost ?? []);
  // Only an operator can end this wait, by repairing the host or declaring it destroyed.
  const waiting = silent === undefined ? {} : ({ obstacle: `WaitForHost ${silent}`, waits: true } as const);
  return { step: "RemoveServer", progressPct: 50, ...waiting };
}

/** One row for each type of operation that changes a whole service. */
// biome-ignore format: a table, aligned so that it reads as one
const procedures: Record<ServiceOperationType, Procedure> = {
  create:    creation,
  start:     { ...convergeToSpec, retriesError: true },
  stop:      { ...convergeToSpec, isComplete: ({ status }) => status.state === "Stopped" },
  restart:   restarting,
  configure: convergeToSpec,
  maintenance,
  upgrade:     maintenance,
  add_node:    addNode,
  remove_node: removeNode,
  move_node:   moveNode,
  failover,
  resize:    resizing,
  expand:    resizing,
  delete:    deletion,
};

/** Procedure of the operation in progress; without one the service converges to its spec. */
export function procedureOf(operation: OperationObject | undefined): Procedure {
  return lookUp<Procedure>(procedures, operation?.spec.type ?? "") ?? convergeToSpec;
}
