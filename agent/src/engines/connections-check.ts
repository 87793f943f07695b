import type { EngineCheck } from "./engine-driver.ts";

/** Share of connections in use from which on the check is degraded. */
const degradedFrom = 0.9;

/** Degraded if nearly all connections are in use. */
export function connectionsCheck(used: number, limit: number): EngineCheck {
  if (used < limit * degradedFrom) return { name: "connections", status: "healthy", reason: "" };
  // The reason omits the count, which would change with each observation.
  const reason = `Over 90% of the ${limit} connections are in use. Close some, use a pooler, or raise the connection limit.`;
  return { name: "connections", status: "degraded", reason };
}
