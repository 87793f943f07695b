import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** An app of an organization, where its name is unique. */
export type AppObject = Resource<AppSpec, AppStatus>;

export const appKind = defineKind<AppObject>("app", {
  deletedWithOrganization: true,
  quotas: [{ name: "apps", label: "apps", limit: 50 }],
});

export interface AppSpec {
  /** Null if unknown. */
  readonly homeUrl: string | null;
  readonly attachments: readonly AttachmentSpec[];
  readonly domains: readonly DomainSpec[];
}

/** Apps are hosted externally, so an app is Running at once and has no observed state. */
export type AppStatus = Readonly<Record<string, never>>;

/** A database of a PostgreSQL service. */
export interface AttachmentSpec {
  readonly id: string;
  readonly serviceId: string;
  readonly databaseName: string;
}

/** A domain of the app's owner. */
export interface DomainSpec {
  readonly id: string;
  /** In lower case, without a trailing dot. */
  readonly name: string;
  /** Token that the domain's TXT record must contain. */
  readonly token: string;
  readonly createdAt: number;
  /** Time of verification in milliseconds since 1970; null until the record was found. */
  readonly verifiedAt: number | null;
}

/** Most attachments and domains of one app. */
export const attachmentsMax = 10;
export const domainsMax = 10;

/** True if the app's owner has verified the domain. */
export function hasVerified({ spec }: AppObject, domain: string): boolean {
  return spec.domains.some(({ name, verifiedAt }) => name === domain && verifiedAt !== null);
}
