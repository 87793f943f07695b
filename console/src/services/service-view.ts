import type { Catalog, ManagedService, Operation } from "@holdfast/sdk/responses.ts";
import { durationText } from "../format.ts";
import { toneOf } from "../tone.ts";

/** True for an operation in progress. */
export function isOpen(operation: Operation | null): operation is Operation {
  return operation !== null && (operation.status === "pending" || operation.status === "running");
}

/** Time to the next request for a service: 1 s while an operation is in progress. */
export function pollIntervalMsOf(service: ManagedService | undefined): number {
  if (service === undefined) return 5_000;
  return isOpen(service.operation) || toneOf(service.status) === "busy" ? 1_000 : 15_000;
}

/** The reason of an unhealthy disk, which blocks writes or soon does; undefined for one that has space. */
export function storageFault({ health: { checks } }: Pick<ManagedService, "health">): string | undefined {
  return checks.find(({ name, status }) => name === "storage" && status === "unhealthy")?.reason ?? undefined;
}

/** Cost of a service in a month; undefined for a plan that the catalog does not have. */
export function monthlyCost(
  catalog: Catalog,
  choice: {
    readonly plan_name: string;
    readonly storage_tier: string;
    readonly storage_size_gb: number;
    readonly nodes: number;
  },
): number | undefined {
  const plan = catalog.plans.find(({ plan_name: name }) => name === choice.plan_name);
  const tier = catalog.storage_tiers.find(({ storage_tier: name }) => name === choice.storage_tier);
  if (plan === undefined || tier === undefined) return undefined;
  return choice.nodes * (plan.monthly_cost + choice.storage_size_gb * tier.monthly_cost_per_gb);
}

/** "PostgreSQL 17". */
export function engineText(catalog: Catalog | undefined, service: Pick<ManagedService, "database_type" | "version">) {
  const engine = catalog?.engines.find(({ database_type: type }) => type === service.database_type);
  return `${engine?.title ?? service.database_type} ${service.version}`;
}

/** Text of the current step: "Setup server" for "SetupServer". */
export function stepText(step: string | null): string {
  if (step === null || step === "") return "Waiting to start";
  const text = step.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Text of the time until the deadline of an operation; undefined without a deadline. */
export function remainingText({ deadline }: Operation, now: number): string | undefined {
  if (deadline === null) return undefined;
  const seconds = (Date.parse(deadline) - now) / 1_000;
  return seconds > 0 ? `at most ${durationText(seconds)}` : "longer than expected";
}

/** Reason why a deleted service cannot be undeleted; undefined if it can. */
export function undeleteRefusal(
  { undelete_until: until }: Pick<ManagedService, "undelete_until">,
  now: number,
): string | undefined {
  if (until === null) return "No final backup is retained.";
  return Date.parse(until) <= now ? "The retention of the final backup has ended." : undefined;
}
