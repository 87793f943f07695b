import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";
import { egressPart } from "#egress-system.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { feeds } from "#fleet/running-fleet.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { authKind } from "./auth/auth.ts";
import { createAuthSecrets } from "./auth/auth-secrets.ts";
import { createIssuerService } from "./auth/issuer-service.ts";
import { createMailStatusRecorder } from "./auth/mail-status.ts";
import { createSignIns } from "./auth/sign-in-of.ts";

/** Settings of the issuers' addresses, as clients and engines see them. */
export const appSettings = {
  issuerAddresses: list("HOLDFAST_ISSUER_ADDRESSES", "Addresses at which end users reach the issuers", "127.0.0.1"),
  issuerPort: integer("HOLDFAST_ISSUER_PORT", "Port of the issuers; any other than 443 is in their URLs", 443),
  issuersFrom: list("HOLDFAST_ISSUERS_FROM", "Networks (CIDRs) from which issuers reach databases", "127.0.0.1/32"),
  domainResolvers: {
    ...list(
      "HOLDFAST_DOMAIN_RESOLVERS",
      "Name servers (address:port) for the records of users' domains; empty: the name servers of the host",
      "",
    ),
    formerly: "HOLDFAST_DOMAIN_SERVERS",
  },
} as const;

export type AppSettings = ValuesOf<typeof appSettings>;

/** The feed that issuers follow, on the listener for agents, which opens before the system of apps. */
export function contributeIssuerFeed(
  kernel: Kernel,
  useLater: UseLater,
  { issuerPort }: AppSettings,
): readonly Contribution[] {
  const [egress, fleet] = [useLater(egressPart), useLater(fleetPart)];
  const { collections, sealer } = kernel;
  const auths = collections.open(authKind);
  const services = collections.open(managedServiceKind);
  const machines = collections.open(machineKind);
  const secrets = createAuthSecrets(sealer);
  const signIns = createSignIns({ ...kernel, services, machines, secrets, issuerPort });
  const service = createIssuerService({
    ...kernel,
    recordMailStatus: createMailStatusRecorder({ ...kernel, auths }),
    now: kernel.clock.now,
    ready: () => collections.ready(),
    apps: () => signIns(auths.values()),
    subscribe(onChange) {
      const watches = [auths, services, machines].map((collection) => collection.subscribe(onChange));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    own: () => {
      const { ownListeners, allowed } = egress();
      const addresses = [...machines.values()].flatMap(({ object: { status } }) => [
        status.address,
        status.publicAddress,
      ]);
      return {
        listeners: [...ownListeners()],
        loopbackBlock: fleet().loopbackBlock,
        machineAddresses: addresses.filter((address) => address !== ""),
        allowed: [...allowed],
      };
    },
  });
  return [feeds.of({ dataPlane: "issuer", service })];
}
