import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * The addresses of one name. The id is the absolute name in lower case without the final dot, such as
 * `db-1.example.com`.
 */
export type DnsRecordObject = Resource<DnsRecordSpec, DnsRecordStatus>;

export const dnsRecordKind = defineKind<DnsRecordObject>("dns-record");

export interface DnsRecordSpec {
  /** IPv4 and IPv6 addresses. */
  readonly addresses: readonly string[];
  readonly ttlS: number;
  readonly owner: { readonly kind: string; readonly id: string };
}

/** Records have no status. */
export type DnsRecordStatus = Readonly<Record<string, never>>;
