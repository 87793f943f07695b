import type { ServiceJson } from "./service-json.ts";

/** Is the service healthy, but for databases that a client left dropped halfway? */
export function isWell({ status, checks }: ServiceJson["health"]): boolean {
  return (
    status === "healthy" ||
    (status === "degraded" && checks.every((each) => each.status === "healthy" || each.name === "databases"))
  );
}
