import type { Clock } from "@holdfast/common/clock.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { type AppObject, type DomainSpec, domainsMax, newDomain } from "../app/app.ts";
import { domainFault, domainNameOf } from "../app/domain-record.ts";

export interface BundleDomainDeps {
  /** True if the domain is the host of the app's issuer, which keeps it. */
  readonly isIssuer: (appId: string, domain: string) => boolean;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The fault of a domain that an app cannot have. */
export function domainFaults({ domain }: ResourceSpec, platformDomain: string): readonly FieldFault[] {
  // The schema refuses other types.
  if (typeof domain !== "string" || domainNameOf(domain, platformDomain) !== undefined) return [];
  const detail = domainFault(domain, platformDomain);
  return [{ field: "domain", pointer: "/domain", code: "invalid_value", detail }];
}

/** The domain that the descriptor of the app's bundle names; undefined without one. */
export function bundleDomainOf({ spec }: AppObject): string | undefined {
  return spec.domains.find(({ ofBundle }) => ofBundle)?.name;
}

/**
 * The app with this domain of its descriptor. A former one is removed, and domains of users remain. A domain that the
 * app has already keeps its verification. Throws WRONG_STATE if the app has the largest number of domains.
 */
export function withBundleDomain<A extends AppObject>(
  app: A,
  name: string | undefined,
  { isIssuer, clock, newId }: BundleDomainDeps,
): A {
  const { metadata, spec } = app;
  const retained = spec.domains.filter(
    (domain) => !domain.ofBundle || domain.name === name || isIssuer(metadata.id, domain.name),
  );
  const marked = retained.map((domain): DomainSpec => {
    const { ofBundle: _mark, ...ofUser } = domain;
    return domain.name === name ? { ...ofUser, ofBundle: true } : ofUser;
  });
  const isThere = name === undefined || marked.some((domain) => domain.name === name);
  if (!isThere && marked.length >= domainsMax)
    throw new HoldfastError("WRONG_STATE", `The app has ${domainsMax} domains already.`);
  const added: DomainSpec[] = isThere ? [] : [{ ...newDomain(newId(), name, clock.now()), ofBundle: true }];
  return { ...app, spec: { ...spec, domains: [...marked, ...added] } };
}
