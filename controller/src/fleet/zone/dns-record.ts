import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * A DNS record: the addresses of one name. The id is the absolute name in lower case without the final dot, such as
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

/** Status of a record, which has no fields. */
export type DnsRecordStatus = Readonly<Record<string, never>>;

/**
 * The private form of a public name, which resolves to private addresses: `db-abcdefgh.private.local.example` for
 * `db-abcdefgh.local.example`. `private` is a separate label, so that the name of no service can collide with it.
 */
export function privateNameOf(name: string): string {
  const [label, ...rest] = name.split(".");
  return [label, "private", ...rest].join(".");
}
