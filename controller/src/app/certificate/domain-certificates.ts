import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { CertificateOfDomain } from "../app/app-message.ts";
import { accountKeyOf, acmeAccountKind } from "./acme-account.ts";
import { createAcmeAuthority } from "./acme-authority.ts";
import { type DomainCertificateSettings, domainAuthorityOf } from "./acme-settings.ts";
import { certificateMessage } from "./certificate-message.ts";
import { type CertificateWorkDeps, createCertificateWork } from "./certificate-reconciler.ts";
import { isChallengeServed } from "./challenge-probe.ts";
import { createAddressLookup } from "./domain-address.ts";
import { certificateId, domainCertificateKind } from "./domain-certificate.ts";

export interface DomainCertificatesDeps
  extends Pick<Kernel, "collections" | "sealer" | "begin" | "clock" | "log">,
    Pick<CertificateWorkDeps, "apps" | "isIssuer" | "hostOf"> {
  /** Addresses at which the controller reaches the ingresses. */
  readonly ingressAddresses: readonly string[];
}

/** Certificates of domains by a public authority. */
export interface DomainCertificates {
  readonly work: ControlLoop;
  readonly certificateOf: CertificateOfDomain;
}

export function createDomainCertificates(
  deps: DomainCertificatesDeps,
  settings: DomainCertificateSettings & { readonly domainResolvers: readonly string[] },
): DomainCertificates {
  const { collections, ingressAddresses: addresses, clock } = deps;
  const certificates = collections.open(domainCertificateKind);
  const accounts = collections.open(acmeAccountKind);
  const chosen = domainAuthorityOf(settings);
  const [redirect = ""] = settings.redirectListen;
  return {
    work: createCertificateWork({
      ...deps,
      certificates,
      authority:
        chosen && createAcmeAuthority({ ...chosen, accountKey: () => accountKeyOf({ ...deps, ...chosen, accounts }) }),
      hasAddress: createAddressLookup(settings.domainResolvers),
      isServed: (domain, challenge, signal) =>
        isChallengeServed({ addresses, port: endpointOf(redirect).port }, domain, challenge, signal),
    }),
    certificateOf(appId, { id }) {
      const found = certificates.get(certificateId(appId, id))?.object;
      return chosen && found && certificateMessage(found, clock.now());
    },
  };
}
