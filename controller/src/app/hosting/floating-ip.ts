import { isIPv4 } from "node:net";
import { list, type ValuesOf } from "@holdfast/common/config.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { HostedApp } from "./hosted-app.ts";

const addresses = list(
  "HOLDFAST_FLOATING_IPS",
  "IPv4 addresses that hosted apps may have alone, on which all ingresses listen; empty: none",
  "",
);

export const floatingIpSettings = {
  floatingIps: {
    ...addresses,
    parse(value: string) {
      const all = addresses.parse(value);
      const other = all.find((each) => !isIPv4(each));
      if (other !== undefined) throw new Error(`${other} is not an IPv4 address`);
      return all;
    },
  },
} as const;

export type FloatingIpSettings = ValuesOf<typeof floatingIpSettings>;

/** A claim of an address, which is its id: two apps never have the same one. */
export type FloatingIpObject = Resource<{ readonly appId: string }, Readonly<Record<string, never>>>;

export const floatingIpKind = defineKind<FloatingIpObject>("floating-ip", { deletedWithOrganization: true });

/** Addresses that belong to one app each. They are the ingresses', so they outlive all machines of their app. */
export interface FloatingIps {
  readonly visibleIn: readonly Pick<Collection<unknown>, "untilRevision">[];
  /**
   * Claims a free address in the unit of work; the app with it. The same app if it has one already. Throws
   * NO_FLOATING_IP.
   */
  assign(unit: Changes, app: HostedApp, signal: AbortSignal): Promise<HostedApp>;
  /** Frees the app's address in the unit of work; the app without it. */
  release(unit: Changes, app: HostedApp, signal: AbortSignal): Promise<HostedApp>;
}

export interface FloatingIpsDeps extends FloatingIpSettings {
  readonly claims: Collection<FloatingIpObject>;
  readonly clock: Clock;
}

export function createFloatingIps({ floatingIps, claims, clock }: FloatingIpsDeps): FloatingIps {
  return {
    visibleIn: [claims],
    async assign(unit, app, signal) {
      const { hosting } = app.spec;
      if (hosting.floatingIp !== undefined) return app;
      for (const address of floatingIps) {
        // Memory may lack the newest claims; the store has all of them.
        if ((claims.get(address) ?? (await claims.getCurrent(address, signal))) !== undefined) continue;
        const { id: appId, organizationId } = app.metadata;
        const metadata = newMetadata(address, clock.now(), { organizationId });
        unit.create(floatingIpKind, { metadata, spec: { appId }, status: {} });
        return {
          ...app,
          metadata: nextMetadata(app.metadata, clock.now()),
          spec: { ...app.spec, hosting: { ...hosting, floatingIp: address } },
        };
      }
      throw new HoldfastError(
        "NO_FLOATING_IP",
        floatingIps.length === 0
          ? "The installation has no floating IPs. An operator sets HOLDFAST_FLOATING_IPS."
          : `All ${floatingIps.length} floating IPs are in use.`,
      );
    },
    async release(unit, app, signal) {
      const { floatingIp, ...hosting } = app.spec.hosting;
      if (floatingIp === undefined) return app;
      const claim = await claims.getCurrent(floatingIp, signal);
      if (claim?.object.spec.appId === app.metadata.id) unit.remove(floatingIpKind, claim);
      return {
        ...app,
        metadata: nextMetadata(app.metadata, clock.now()),
        spec: { ...app.spec, hosting },
      };
    },
  };
}
