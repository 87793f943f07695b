import type { OperationObject, OperationType, ServiceOperationType } from "#operation/operation.ts";
import { deletion } from "./deletion.ts";
import { holdToSpec } from "./hold-to-spec.ts";
import { maintenance } from "./maintenance.ts";
import { addNode, creation, failover, moveNode, removeNode } from "./nodes.ts";
import type { Procedure } from "./procedure.ts";
import { resizing } from "./resizing.ts";
import { restarting } from "./restarting.ts";

/** Each type of operation that has a service for itself. */
// biome-ignore format: a table, aligned so that it reads as one
const procedures: Record<ServiceOperationType, Procedure> = {
  create:    creation,
  start:     { ...holdToSpec, leavesError: true },
  stop:      { ...holdToSpec, isReached: ({ status }) => status.state === "Stopped" },
  restart:   restarting,
  configure: holdToSpec,
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

/** How the operation in progress goes; a service without one is held to its spec. */
export function procedureOf(operation: OperationObject | undefined): Procedure {
  const rows: Partial<Record<OperationType, Procedure>> = procedures;
  return (operation && rows[operation.spec.type]) ?? holdToSpec;
}
