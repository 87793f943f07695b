import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** An app of an organization. Its name is unique there. */
export type AppObject = Resource<AppSpec, AppStatus>;

export const appKind = defineKind<AppObject>("app", {
  goesWithOrganization: true,
  quotas: [{ name: "apps", words: "apps", limit: 50 }],
});

export interface AppSpec {
  /** Null where it is not known. */
  readonly homeUrl: string | null;
  readonly attachments: readonly AttachmentSpec[];
  readonly domains: readonly DomainSpec[];
}

/** One that runs anywhere is Running at once. */
export type AppStatus = Readonly<Record<string, never>>;

/** A database of a PostgreSQL service. */
export interface AttachmentSpec {
  readonly id: string;
  readonly serviceId: string;
  readonly databaseName: string;
}

/** A domain that the owner has, or says to have. */
export interface DomainSpec {
  readonly id: string;
  /** In lower case, without a dot at its end. */
  readonly name: string;
  /** What its TXT record is to say. */
  readonly token: string;
  readonly createdAt: number;
  /** Null until the record was seen. */
  readonly verifiedAt: number | null;
}

/** Of one app. */
export const attachmentsMax = 10;
export const domainsMax = 10;

/** Has its owner shown that the domain is theirs? */
export function hasVerified({ spec }: AppObject, domain: string): boolean {
  return spec.domains.some(({ name, verifiedAt }) => name === domain && verifiedAt !== null);
}
