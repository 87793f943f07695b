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
}

/** One that runs anywhere is Running at once. */
export type AppStatus = Readonly<Record<string, never>>;

/** A database of a PostgreSQL service. */
export interface AttachmentSpec {
  readonly id: string;
  readonly serviceId: string;
  readonly databaseName: string;
}

/** Of one app. */
export const attachmentsMax = 10;
