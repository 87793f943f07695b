import { randomBytes } from "node:crypto";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { storageQuota } from "#services/service/managed-service.ts";
import type { HostingSpec, HostingStatus } from "../hosting/hosting.ts";

/** An app of an organization; its name is unique in the organization. */
export type AppObject = Resource<AppSpec, AppStatus>;

export const appKind = defineKind<AppObject>("app", {
  deletedWithOrganization: true,
  quotas: [
    { name: "apps", label: "apps", limit: 50 },
    {
      ...storageQuota,
      amountOf: ({ spec: { hosting } }) => (hosting === undefined ? 0 : hosting.storageSizeGb * hosting.replicas),
    },
  ],
});

export interface AppSpec {
  /** Null if unknown. */
  readonly homeUrl: string | null;
  readonly attachments: readonly AttachmentSpec[];
  readonly domains: readonly DomainSpec[];
  /** Absent: the app runs outside of the platform. */
  readonly hosting?: HostingSpec;
}

export interface AppStatus {
  /** Absent for an app that runs outside of the platform: it has no observed state, and is reported as Running. */
  readonly hosting?: HostingStatus;
}

/** A database of a service, a files service, or another hosted app. */
export interface AttachmentSpec {
  readonly id: string;
  /** Id of the service or app. */
  readonly serviceId: string;
  /** Empty for a files service and an app. */
  readonly databaseName: string;
  /** True for an app; absent for a service. */
  readonly app?: true;
  /** The key of a files service that belongs to the attachment; absent for a database. */
  readonly files?: { readonly accessKeyId: string };
  /** The user of a hosted app in the database; absent for other apps, and for attachments of earlier releases. */
  readonly login?: { readonly engine: string; readonly username: string };
  /** Prefix of a hosted app's variables; absent: by the name of the service. */
  readonly prefix?: string;
  /** Number of the first deployment of a hosted app with the attachment; absent for an attachment of a bundle. */
  readonly deploymentNumber?: number;
}

/** A domain that the organization has registered for the app. */
export interface DomainSpec {
  readonly id: string;
  /** Domain in lower case without a trailing dot, such as `login.shop.example`. */
  readonly name: string;
  /** Token that the domain's TXT record must contain. */
  readonly token: string;
  readonly createdAt: number;
  /** Time of verification in milliseconds since 1970; null until the record was found. */
  readonly verifiedAt: number | null;
  /** Time of the last check of the record after the verification; absent before the first one. */
  readonly checkedAt?: number;
  /** Time of the first check that did not find the record; absent while it is found. */
  readonly missingSince?: number;
  /** True for the domain that the descriptor of the app's bundle names. */
  readonly ofBundle?: true;
}

/** A domain that is not verified yet. */
export function newDomain(id: string, name: string, now: number): DomainSpec {
  return { id, name, token: randomBytes(18).toString("base64url"), createdAt: now, verifiedAt: null };
}

/** Maximum numbers of attachments and domains of an app. */
export const attachmentsMax = 10;
export const domainsMax = 10;

/** True if the domain is verified for the app. */
export function hasVerified({ spec }: AppObject, domain: string): boolean {
  return spec.domains.some(({ name, verifiedAt }) => name === domain && verifiedAt !== null);
}
