import type { Connection, LogPage, ManagedService, Operation, Problem } from "@holdfast/sdk/index.ts";

/**
 * Responses of the API as tests read them: in the SDK's types, which are compared with the protos (ADR 8). The shape of
 * every response is checked as well.
 */
export type ServiceJson = ManagedService;
export type OperationJson = Operation;
export type ConnectionJson = Connection;
/** A problem document without its status, since a response is read as either the requested object or a problem. */
export type ProblemJson = Pick<Problem, "code" | "detail" | "errors">;
export type LogsJson = LogPage;

/** One page of a list, under the plural of its items. */
export type PageJson<Plural extends string, Item> = Readonly<Record<Plural, readonly Item[]>> & {
  readonly next_cursor: string | null;
};

/** A service that has a primary. Throws for one whose members elect their leader. */
export function withPrimary(service: ServiceJson): ServiceJson & { readonly primary_node_id: string } {
  const { primary_node_id: primary, name } = service;
  if (primary === null) throw new Error(`the service ${name} has no primary`);
  return { ...service, primary_node_id: primary };
}

/** True if the service is healthy, except for databases that a client left half dropped. */
export function isHealthy({ status, checks }: ServiceJson["health"]): boolean {
  return (
    status === "healthy" ||
    (status === "degraded" && checks.every((each) => each.status === "healthy" || each.name === "databases"))
  );
}
