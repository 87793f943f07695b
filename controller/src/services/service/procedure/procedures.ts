import { lookUp } from "@holdfast/common/look-up.ts";
import type { OperationObject } from "#operation/operation.ts";
import { deletion } from "./deletion.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import { maintenance } from "./maintenance.ts";
import { addNode, creation, failover, moveNode, removeNode } from "./nodes.ts";
import type { Procedure } from "./procedure.ts";
import { resizing } from "./resizing.ts";
import { restarting } from "./restarting.ts";
import type { ServiceOperationType } from "../service-operations.ts";

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
