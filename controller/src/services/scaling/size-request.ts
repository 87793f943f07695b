import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { canReplay, excessMessage, planExcesses } from "@holdfast/common/engine-catalog/plan-limits.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { ServiceSize } from "../service/service-operations.ts";
import type { OperationObject } from "#operation/operation.ts";
import { logSettings, raisedMinimums, replicaMinimums } from "../configuration/replica-minimums.ts";
import { drainReason } from "../service/health/managed-service-health.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { operationMembers } from "../service/operation-members.ts";
import { beginOperation } from "../service/service-commands.ts";
import { withRestart } from "../service/member/restarts.ts";
import { machineSizeOf } from "./service-size.ts";
import { firstMemberOf } from "../service/member/member-roles.ts";

const mib = 1024 ** 2;

/** The requested plan, storage, or both. */
export type RequestedSize = Partial<ServiceSize>;

/** True if this is the size that the service has or changes to. */
export function hasSize({ spec }: ManagedServiceObject, { planName, storageSizeGb }: RequestedSize): boolean {
  return (planName ?? spec.planName) === spec.planName && (storageSizeGb ?? spec.storageSizeGb) === spec.storageSizeGb;
}

/** Throws if the service cannot change its size in this state, with the reason (409). */
export function requireResizable(service: ManagedServiceObject, inProgress: OperationObject | undefined): void {
  const { metadata, spec, status } = service;
  const members = operationMembers(service, inProgress);
  if (metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("OPERATION_IN_PROGRESS", "The service is being deleted.", { members });
  if (status.state === "Stopped" && spec.power === "on")
    throw new HoldfastError("WRONG_STATE", drainReason, { members });
  if (status.state === "Running" || status.state === "Stopped" || status.state === "Error") return;
  throw new HoldfastError("WRONG_STATE", `The service is ${status.state}; wait until it is Running.`, { members });
}

/**
 * The requested size. `observed`: the last observations of its engines, in the order of its nodes. Throws
 * INVALID_REQUEST for a plan that the catalog lacks, and NOT_POSSIBLE for a size that the service cannot change to.
 */
export function requireSize(
  service: ManagedServiceObject,
  requested: RequestedSize,
  context: { readonly catalog: CatalogData; readonly observed: readonly (InstanceObservation | undefined)[] },
): ServiceSize {
  const { spec } = service;
  const { planName = spec.planName, storageSizeGb = spec.storageSizeGb } = requested;
  if (storageSizeGb < spec.storageSizeGb)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `storage_size_gb is ${spec.storageSizeGb} and storage can only grow. For less, move the data to a new service.`,
    );
  if (planName !== spec.planName) requirePlan(service, planName, context);
  return { planName, storageSizeGb };
}

function requirePlan(
  service: ManagedServiceObject,
  planName: string,
  { catalog, observed }: Parameters<typeof requireSize>[2],
): void {
  const { spec } = service;
  const offered = catalog.plans.map((plan) => plan.planName);
  if (!offered.includes(planName))
    throw invalid({ field: "plan_name", code: "unknown", detail: `must be one of ${offered.join(", ")}` });
  const [before, after] = [planOf(catalog, spec.planName), planOf(catalog, planName)];
  if (before.kind !== after.kind)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `${planName} has machines of kind ${after.kind}, and ${spec.planName} has machines of kind ${before.kind}. Restore a backup into a new service of that plan.`,
    );
  const { vcpu, memoryBytes, diskBytes: storageBytes } = machineSizeOf({ ...spec, planName }, catalog);
  const plan = { vcpu, memoryBytes, storageBytes };
  if (after.memoryGb < before.memoryGb) requireParameters(service, planName, plan, observed);
  const availableBytes = engineOf(spec.databaseType)?.sizing.dataMemoryBytes?.(plan);
  if (availableBytes === undefined) return;
  const usedBytes = Math.max(0, ...observed.map((instance) => Number(instance?.memoryDataBytes ?? 0n)));
  if (usedBytes > availableBytes)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `The data takes ${Math.ceil(usedBytes / mib)} MiB of memory, and ${planName} has ${Math.floor(availableBytes / mib)} MiB for it. Delete data first.`,
    );
}

/**
 * Throws for parameters that a smaller plan cannot support. Until a replica has replayed a lower value, it starts with
 * at least the values of the primary, and so does an engine that replays the log of a backup.
 */
function requireParameters(
  service: ManagedServiceObject,
  planName: string,
  plan: PlanSize,
  observed: readonly (InstanceObservation | undefined)[],
): void {
  const { databaseType: engine, version, parameters, nodes } = service.spec;
  const [excess] = planExcesses(engine, version, plan, parameters, Object.keys(parameters));
  if (excess !== undefined)
    throw new HoldfastError("NOT_POSSIBLE", `In ${planName}, ${excessMessage(excess)}. Change the parameter first.`);
  const primary = observed[nodes.indexOf(firstMemberOf(service))];
  const raised = raisedMinimums({ engine, version, plan, parameters }, replicaMinimums(service.spec, primary));
  if (planExcesses(engine, version, plan, { ...parameters, ...raised }, Object.keys(raised)).length > 0)
    throw new HoldfastError("NOT_POSSIBLE", excessiveMinimums(planName, "Its replicas start", raised));
  const replayed = logSettings(service.spec, primary);
  if (!canReplay(engine, version, plan, replayed))
    throw new HoldfastError("NOT_POSSIBLE", excessiveMinimums(planName, "Replay of its log starts", replayed));
}

function excessiveMinimums(planName: string, starts: string, minimums: Readonly<Record<string, string>>): string {
  const settings = Object.entries(minimums).map(([name, value]) => `${name} = ${value}`);
  return `${planName} has too little memory. ${starts} with ${settings.join(", ")}, which the primary runs with. Lower these parameters and restart the service first.`;
}

/** The service with the requested size in its spec, and the operation that makes the change. */
export function beginResizing(
  service: ManagedServiceObject,
  to: ServiceSize,
  catalog: CatalogData,
  { operationId, now }: { readonly operationId: string; readonly now: number },
): { after: ManagedServiceObject; operation: OperationObject } {
  const { spec } = service;
  const { planName, storageSizeGb } = spec;
  const from = { planName, storageSizeGb };
  const isOtherPlan = to.planName !== planName;
  const resizing = {
    operationId,
    from,
    fromMachine: machineSizeOf(from, catalog),
    toMachine: machineSizeOf(to, catalog),
  };
  // Engines apply most settings that depend on the plan only at their start.
  const change = { ...to, ...(isOtherPlan && withRestart(service)), resizing };
  const type = isOtherPlan ? "resize" : "expand";
  return beginOperation(service, type, change, { operationId, now, work: { from, to } });
}
