import type { AppObject } from "../app/app.ts";
import type { HostingSpec, HostingStatus } from "./hosting.ts";

/** An app that the platform hosts. */
export type HostedApp = AppObject & {
  readonly spec: { readonly hosting: HostingSpec };
  readonly status: { readonly hosting: HostingStatus };
};

export function isHosted(app: AppObject): app is HostedApp {
  return app.spec.hosting !== undefined && app.status.hosting !== undefined;
}
