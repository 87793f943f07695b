import { isIP } from "node:net";
import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { feeds } from "#fleet/running-fleet.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import { certificateNames } from "#kernel/pki/local-identities.ts";
import { appKind } from "../app/app.ts";
import { authKind, isIssuerHost } from "../auth/auth.ts";
import { domainCertificateKind } from "../certificate/domain-certificate.ts";
import { createServedCertificates } from "../certificate/served-certificates.ts";
import type { HostedApp } from "../hosting/hosted-app.ts";
import { routeLoginOf } from "../hosting/login-form.ts";
import { appRoutes } from "./app-routes.ts";
import { createIngressFeed } from "./ingress-feed.ts";

export const ingressSettings = {
  ingressAddresses: list("HOLDFAST_INGRESS_ADDRESSES", "Addresses at which clients reach hosted apps", "127.0.0.1"),
  ingressPort: integer("HOLDFAST_INGRESS_PORT", "Port of hosted apps; any other than 443 is in their URLs", 443),
  ingressNames: list(
    "HOLDFAST_INGRESS_NAMES",
    "Names in the certificate of the ingress, besides localhost: *.apps. before HOLDFAST_DOMAIN",
  ),
  ingressFrom: list(
    "HOLDFAST_INGRESS_FROM",
    "Networks (CIDRs) from which ingresses reach the machines of apps",
    "127.0.0.1/32",
  ),
} as const;

export type IngressSettings = ValuesOf<typeof ingressSettings>;

/** The stream of ingresses, on the listener for agents, and the names of their certificate. */
export function contributeIngress(
  kernel: Kernel,
  useLater: UseLater,
  { ingressNames }: IngressSettings,
): readonly Contribution[] {
  const fleet = useLater(fleetPart);
  const { collections } = kernel;
  const apps = collections.open(appKind);
  const machines = collections.open(machineKind);
  const auths = collections.open(authKind);
  const isIssuer = (appId: string, name: string) => isIssuerHost(auths.get(appId)?.object, name);
  const certificates = collections.open(domainCertificateKind);
  const { certificateOf, challengesOf } = createServedCertificates({ ...kernel, certificates });
  const loginOf = (app: HostedApp) => routeLoginOf(app, kernel.sealer);
  const service = createIngressFeed({
    ...kernel,
    ready: () => collections.ready(),
    routes: () =>
      appRoutes(apps.values(), (id) => machines.get(id)?.object, fleet().domain, isIssuer, loginOf, challengesOf),
    publicCertificateOf: certificateOf,
    // Clients send no server name for an address.
    isCovered: (host) => isIP(host) !== 0 || host.endsWith(`.${fleet().domain}`),
    now: kernel.clock.now,
    subscribe(onChange) {
      const watches = [apps, machines, auths, certificates].map((collection) => collection.subscribe(onChange));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  });
  return [
    feeds.of({ dataPlane: "ingress", service }),
    certificateNames.of({ dataPlane: "ingress", names: ingressNames }),
  ];
}
