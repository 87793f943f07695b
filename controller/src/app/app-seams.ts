import { machineKind } from "#fleet/machine/machine.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import type { AppSettings } from "./app-settings.ts";
import { authKind } from "./auth/auth.ts";
import { createAuthSecrets } from "./auth/auth-secrets.ts";
import { createIssuerService } from "./auth/issuer-service.ts";
import { createHearOfMails } from "./auth/mail-health.ts";
import { createSignIns } from "./auth/sign-in-of.ts";

/** What issuers have to know of the platform beside apps. */
export interface BelowIssuers {
  readonly ownListeners: () => readonly string[];
  readonly fleet: Pick<FleetSystem, "loopbackBlock">;
  readonly allowedEgress: readonly string[];
}

/** What issuers follow, on the listener for agents, which is open before apps are. */
export function createAppSeams(kernel: Kernel, { issuerPort }: AppSettings, below: () => BelowIssuers) {
  const { collections, sealer } = kernel;
  const auths = collections.open(authKind);
  const services = collections.open(managedServiceKind);
  const machines = collections.open(machineKind);
  const secrets = createAuthSecrets(sealer);
  const signIns = createSignIns({ ...kernel, services, machines, secrets, issuerPort });
  return {
    issuerFeed: createIssuerService({
      ...kernel,
      hearOfMails: createHearOfMails({ ...kernel, auths }),
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
        const { ownListeners, fleet, allowedEgress } = below();
        const addresses = [...machines.values()].flatMap(({ object: { status } }) => [
          status.address,
          status.publicAddress,
        ]);
        return {
          listeners: [...ownListeners()],
          loopbackBlock: fleet.loopbackBlock,
          machineAddresses: addresses.filter((address) => address !== ""),
          allowed: [...allowedEgress],
        };
      },
    }),
  };
}
