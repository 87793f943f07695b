import type { EngineCheck } from "./engine-driver.ts";

/** From this share of its connections on an engine is about to turn clients away. */
const degradedFrom = 0.9;

/** Pure: are there connections left for clients? */
export function connectionsCheck(used: number, most: number): EngineCheck {
  if (used < most * degradedFrom) return { name: "connections", status: "healthy", reason: "" };
  // Without the count, which is another one at each look.
  const reason = `Over 90% of the ${most} connections are taken. Close some, pool them, or raise the limit of connections.`;
  return { name: "connections", status: "degraded", reason };
}
