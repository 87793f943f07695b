import { HoldfastError } from "@holdfast/common/errors.ts";
import type { AppObject } from "../app/app.ts";
import type { HostingSpec, HostingStatus } from "./hosting.ts";

/** An app that the platform hosts. */
export type HostedApp = AppObject & {
  readonly spec: { readonly hosting: HostingSpec };
  readonly status: { readonly hosting: HostingStatus };
};

/** The app as a hosted one. Throws APP_NOT_HOSTED. */
export function requireHosted(app: AppObject): HostedApp {
  if (!isHosted(app)) throw new HoldfastError("APP_NOT_HOSTED", "The app runs outside of the platform.");
  return app;
}

export function isHosted(app: AppObject): app is HostedApp {
  return app.spec.hosting !== undefined && app.status.hosting !== undefined;
}
