import { parseTarget } from "@holdfast/egress/target.ts";
import type { DnsRecordObject } from "#fleet/zone/dns-record.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { managedServiceKind, type ManagedServiceObject } from "#services/service/managed-service.ts";

/** A service of the installation as a destination. */
export interface OwnService {
  /** Addresses of the members to which the service's name resolves. */
  readonly addresses: readonly string[];
  /** PEM certificates of the authorities that issue the service's certificates. */
  readonly ca: string;
}

/**
 * The service of this organization at an https URL: its name is one of the service's DNS records, and its port the
 * service's. Undefined for any other target, also for services of other organizations, which the egress client judges.
 */
export type OwnServices = (url: string, organizationId: string) => OwnService | undefined;

interface Deps {
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly records: Pick<Collection<DnsRecordObject>, "get">;
  readonly trustBundle: () => string;
}

/** The addresses are those of the platform's own DNS records, without a DNS query. */
export function createOwnServices({ services, records, trustBundle }: Deps): OwnServices {
  return (url, organizationId) => {
    const parsed = parseTarget(url);
    if (!parsed.ok || parsed.target.url.protocol !== "https:") return undefined;
    const { host, port } = parsed.target;
    const { addresses = [], owner } = records.get(host)?.object.spec ?? {};
    if (addresses.length === 0 || owner?.kind !== managedServiceKind.name) return undefined;
    const service = services.get(owner.id)?.object;
    if (service?.metadata.organizationId !== organizationId || service.spec.port !== port) return undefined;
    return { addresses, ca: trustBundle() };
  };
}
