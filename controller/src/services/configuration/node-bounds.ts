import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { parameterFault } from "#catalog/parameter-choice.ts";
import type { ManagedServiceSpec } from "../service/managed-service.ts";

type Parameters = Readonly<Record<string, string>>;

/** Names of parameters that need more nodes than there are, such as Kafka's in-sync replicas. */
function exceeding(databaseType: string, parameters: Parameters, nodeCount: number): string[] {
  const bound = engineOf(databaseType)?.nodeBoundParameters ?? [];
  return bound.filter((name) => Number(lookUp(parameters, name) ?? 0) > nodeCount);
}

/** An error for each parameter that needs more nodes than the service has. */
export function nodeBoundFaults(databaseType: string, parameters: Parameters, nodeCount: number): FieldFault[] {
  return exceeding(databaseType, parameters, nodeCount).map((name) =>
    parameterFault(name, "exceeds_nodes", `${name} is at most ${nodeCount}, the number of nodes`),
  );
}

/** The parameters that this number of nodes supports. */
export function supportedByNodes(databaseType: string, parameters: Parameters, nodeCount: number): Parameters {
  const dropped = exceeding(databaseType, parameters, nodeCount);
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !dropped.includes(name)));
}

/** Throws NOT_POSSIBLE if a parameter needs more nodes than would remain. */
export function requireNodesOfParameters(
  { databaseType, parameters }: Pick<ManagedServiceSpec, "databaseType" | "parameters">,
  nodeCount: number,
): void {
  const [name] = exceeding(databaseType, parameters, nodeCount);
  if (name === undefined) return;
  const value = lookUp(parameters, name);
  throw new HoldfastError("NOT_POSSIBLE", `The parameter ${name} is ${value}. Set it to ${nodeCount} at most first.`);
}
