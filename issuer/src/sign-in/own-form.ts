import type { App } from "../app.ts";
import { type Asked, Refused } from "../http/exchange.ts";
import { problemPage } from "./page.ts";

/** Throws Refused for a form that no page of this issuer sent. Browsers tell the origin with each POST. */
export function requireOwnForm(app: App, { origin, fetchSite }: Pick<Asked, "origin" | "fetchSite">): void {
  const isOwn = origin === app.config.issuerUrl || (origin === "null" && fetchSite === "same-origin");
  if (!isOwn) throw new Refused(problemPage(app, 403, "This form was sent from another site."));
}
