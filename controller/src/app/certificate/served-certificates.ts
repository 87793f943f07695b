import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { byHost, type DomainCertificateObject, hostKey, openedKey } from "./domain-certificate.ts";

/** Certificates and challenges of domains, for ingresses. */
export interface ServedCertificates {
  /** The valid certificate of an app's domain, PEM; undefined without one. */
  certificateOf(appId: string, domain: string): { readonly chain: string; readonly key: string } | undefined;
  /** The open challenges of an app's domains. */
  challengesOf(appId: string, domains: readonly string[]): { readonly token: string; keyAuthorization: string }[];
}

export function createServedCertificates({
  certificates,
  sealer,
  clock,
}: {
  readonly certificates: Pick<Collection<DomainCertificateObject>, "by">;
  readonly sealer: Pick<Sealer, "open">;
  readonly clock: Pick<Clock, "now">;
}): ServedCertificates {
  const of = (appId: string, domain: string) => certificates.by(byHost, hostKey(appId, domain));
  return {
    certificateOf(appId, domain) {
      // A domain that was deleted and added again has two of them.
      const issued = of(appId, domain)
        .flatMap(({ object: { metadata, status } }) => (status.issued ? [{ id: metadata.id, ...status.issued }] : []))
        .toSorted((a, b) => b.expiresAt - a.expiresAt);
      const [newest] = issued;
      if (newest === undefined || newest.expiresAt <= clock.now()) return undefined;
      return { chain: newest.chain, key: openedKey(newest.id, newest.sealedKey, sealer) };
    },
    challengesOf: (appId, domains) =>
      domains
        .flatMap((domain) => of(appId, domain))
        .flatMap(({ object: { status } }) => status.order?.challenge ?? [])
        .map(({ token, keyAuthorization }) => ({ token, keyAuthorization })),
  };
}
