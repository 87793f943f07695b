import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { AppObject } from "../app/app.ts";
import { appHost } from "./app-host.ts";
import { type IngressEndpoints, isServedByIngresses } from "./ingress-probe.ts";

/** How clients reach hosted apps. */
export interface AppIngress {
  /** Addresses of the app for clients: its floating IP, or those of the ingresses. */
  addressesOf(app: AppObject): readonly string[];
  hostOf(app: AppObject): string;
  /** URL of the app for clients. */
  urlOf(app: AppObject): string;
  /** True if name servers have the app's name, and every ingress passes requests at it to a machine. */
  isReachable(app: AppObject, signal: AbortSignal): Promise<boolean>;
}

const namesWithinMs = 2_000;

export function createAppIngress(
  endpoints: IngressEndpoints,
  domain: string,
  { trust, awaitNames }: Pick<FleetSystem, "awaitNames"> & { readonly trust: () => string },
): AppIngress {
  const { addresses, port } = endpoints;
  const addressesOf = ({ spec }: AppObject) =>
    spec.hosting?.floatingIp === undefined ? addresses : [spec.hosting.floatingIp];
  const hostOf = (app: AppObject) => appHost(app, domain);
  return {
    addressesOf,
    hostOf,
    urlOf: (app) => `https://${hostOf(app)}${port === 443 ? "" : `:${port}`}`,
    async isReachable(app, signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(namesWithinMs)]);
      try {
        await awaitNames(hostOf(app), addressesOf(app), limit);
      } catch {
        signal.throwIfAborted();
        return false;
      }
      return isServedByIngresses(endpoints, hostOf(app), trust(), signal);
    },
  };
}
