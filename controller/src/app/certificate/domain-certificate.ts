import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";

/** The certificate of one domain of a hosted app by a public authority (ACME, RFC 8555). */
export type DomainCertificateObject = Resource<DomainCertificateSpec, DomainCertificateStatus>;

export interface DomainCertificateSpec {
  readonly appId: string;
  readonly domainId: string;
  /** Domain in lower case, such as `www.shop.example`. */
  readonly domain: string;
}

/** Times are in milliseconds since 1970. */
export interface DomainCertificateStatus {
  /** The newest certificate; null until the first one. */
  readonly issued: IssuedCertificate | null;
  /** The order in progress, which the next controller continues. */
  readonly order: CertificateOrder | null;
  /** Number of failed orders since the last certificate. */
  readonly failures: number;
  readonly nextAttemptAt: number;
  /** Time of the last order; null before the first one. */
  readonly attemptedAt: number | null;
  /** Reason why there is no newer certificate; null while nothing is wrong. */
  readonly error: string | null;
}

export interface IssuedCertificate {
  /** URL of the directory of the authority that issued it. */
  readonly directoryUrl: string;
  /** PEM, the leaf first. */
  readonly chain: string;
  readonly sealedKey: string;
  readonly issuer: string;
  readonly expiresAt: number;
  /** Time from which on a new certificate is due: a third of the lifetime remains. */
  readonly renewAt: number;
}

export interface CertificateOrder {
  readonly directoryUrl: string;
  /** URL of the order at the authority. */
  readonly url: string;
  /** Private key of the certificate, stored before the authority signs it. */
  readonly sealedKey: string;
  /** Null if the authority does not require a proof. */
  readonly challenge: Challenge | null;
  readonly startedAt: number;
}

/** A challenge of the type http-01 (RFC 8555, section 8.3). */
export interface Challenge {
  readonly url: string;
  readonly token: string;
  /** Response to the authority's request of the token. */
  readonly keyAuthorization: string;
}

const hostOf = ({ spec: { appId, domain } }: DomainCertificateObject): string => hostKey(appId, domain);

export const domainCertificateKind = defineKind<DomainCertificateObject>("domain-certificate", {
  deletedWithOrganization: true,
  indexes: [hostOf],
});

/** Index of certificates by app and domain. */
export const byHost = hostOf;

export function hostKey(appId: string, domain: string): string {
  return `${appId} ${domain}`;
}

/** Id of the certificate of a domain. */
export function certificateId(appId: string, domainId: string): string {
  return `${appId}.${domainId}`;
}

/** The ids of app and domain in the id of a certificate. */
export function partsOfId(id: string): { readonly appId: string; readonly domainId: string } {
  const [appId = "", domainId = ""] = id.split(".", 2);
  return { appId, domainId };
}

/** `key`: private key, PEM. It can be opened only for the certificate with this id. */
export function sealedKey(id: string, key: string, sealer: Pick<Sealer, "seal">): string {
  return sealer.seal(key, keyOf(domainCertificateKind, id));
}

export function openedKey(id: string, sealed: string, sealer: Pick<Sealer, "open">): string {
  return sealer.open(sealed, keyOf(domainCertificateKind, id));
}

export const initialStatus: DomainCertificateStatus = {
  issued: null,
  order: null,
  failures: 0,
  nextAttemptAt: 0,
  attemptedAt: null,
  error: null,
};
