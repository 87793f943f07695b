import type { ServiceJson } from "./service-json.ts";

/** True if the service is healthy, except for databases that a client left half dropped. */
export function isHealthy({ status, checks }: ServiceJson["health"]): boolean {
  return (
    status === "healthy" ||
    (status === "degraded" && checks.every((each) => each.status === "healthy" || each.name === "databases"))
  );
}
