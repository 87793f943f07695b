import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** The addresses of one name; the id is the name, absolute, lower case, without the last dot. */
export type DnsRecordObject = Resource<DnsRecordSpec, DnsRecordStatus>;

export const dnsRecordKind = defineKind<DnsRecordObject>("dns-record");

export interface DnsRecordSpec {
  /** IPv4 and IPv6 addresses. */
  readonly addresses: readonly string[];
  readonly ttlS: number;
  readonly owner: { readonly kind: string; readonly id: string };
}

/** A record is what it asks for. */
export type DnsRecordStatus = Readonly<Record<string, never>>;
