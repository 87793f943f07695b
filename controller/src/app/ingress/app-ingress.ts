import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { AppObject } from "../app/app.ts";
import { appHost } from "./app-host.ts";
import { type IngressEndpoints, isServedByIngresses } from "./ingress-probe.ts";

/** How clients reach hosted apps. */
export interface AppIngress {
  /** Addresses of the ingresses. */
  readonly addresses: readonly string[];
  hostOf(app: AppObject): string;
  /** URL of the app for clients. */
  urlOf(app: AppObject): string;
  /** True if name servers have the app's name, and every ingress serves it. */
  isReachable(app: AppObject, signal: AbortSignal): Promise<boolean>;
}

const namesWithinMs = 2_000;

export function createAppIngress(
  endpoints: IngressEndpoints,
  domain: string,
  { trust, awaitNames }: Pick<FleetSystem, "awaitNames"> & { readonly trust: () => string },
): AppIngress {
  const { addresses, port } = endpoints;
  const hostOf = (app: AppObject) => appHost(app, domain);
  return {
    addresses,
    hostOf,
    urlOf: (app) => `https://${hostOf(app)}${port === 443 ? "" : `:${port}`}`,
    async isReachable(app, signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(namesWithinMs)]);
      try {
        await awaitNames(hostOf(app), addresses, limit);
      } catch {
        signal.throwIfAborted();
        return false;
      }
      return isServedByIngresses(endpoints, hostOf(app), trust(), signal);
    },
  };
}
