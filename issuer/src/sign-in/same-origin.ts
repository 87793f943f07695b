import type { App } from "../app.ts";
import { type IncomingRequest, Refused } from "../http/messages.ts";
import { problemPage } from "./page.ts";

/** Throws Refused unless a page of this issuer sent the form. Browsers send the origin with each POST. */
export function requireSameOrigin(
  app: App,
  { origin, fetchSite }: Pick<IncomingRequest, "origin" | "fetchSite">,
): void {
  const isSameOrigin = origin === app.config.issuerUrl || (origin === "null" && fetchSite === "same-origin");
  if (!isSameOrigin) throw new Refused(problemPage(app, 403, "This form was sent from another site."));
}
