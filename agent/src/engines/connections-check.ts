import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineCheck } from "./engine-driver.ts";

/** Share of connections in use from which on the check is degraded. */
const degradedFrom = 0.9;

/** Degraded if nearly all connections of the engine, a type of the catalog, are in use. */
export function connectionsCheck(engine: string, used: number, limit: number): EngineCheck {
  if (used < limit * degradedFrom) return { name: "connections", status: "healthy", reason: "" };
  // Only with modes do clients of a pooler share sessions.
  const isShared = (engineOf(engine)?.pooler?.modes ?? []).length > 0;
  const remedy = isShared ? "Close some, use a pooler, or raise" : "Close some, or raise";
  // The reason omits the count, which would change with each observation.
  const reason = `Over 90% of the ${limit} connections are in use. ${remedy} the connection limit.`;
  return { name: "connections", status: "degraded", reason };
}
