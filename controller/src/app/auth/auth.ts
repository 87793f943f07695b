import { next } from "@holdfast/common/machine.ts";
import type { DestinedSecret } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { nextMetadata, type Resource } from "#kernel/store/resource.ts";
import { type AuthEffect, type AuthEvent, type AuthState, authLifecycle } from "./auth-lifecycle.ts";

/** The sign-in of an app. The id of the object is the app's, so an app has one. */
export type AuthObject = Resource<AuthSpec, AuthStatus>;

export const authKind = defineKind<AuthObject>("app-auth", {
  goesWithOrganization: true,
  indexes: [serviceOfAuth],
});

/** Index: the sign-ins whose users are in a service. */
export function serviceOfAuth({ spec }: AuthObject): string {
  return spec.serviceId;
}

/** All that is sealed is sealed with the key of the object, secrets of mail servers and providers also for their destination. */
export interface AuthSpec {
  /** For users; kept for good. */
  readonly authId: string;
  readonly attachmentId: string;
  readonly serviceId: string;
  readonly databaseName: string;
  /** Name that it is served under on the platform's domain. */
  readonly fallbackDomain: string;
  /** Name of the issuer; null: the fallback domain. */
  readonly customDomain: string | null;
  readonly smtp: SmtpSpec;
  /** Absent members are the platform's. */
  readonly theme: ThemeSpec;
  readonly signUp: "open" | "closed";
  readonly mailsPerHour: number;
  /** Role of the issuers in the engine, with its sealed password and verifier. */
  readonly role: string;
  readonly sealedPassword: string;
  readonly sealedVerifier: string;
  /** Sealed: 32 bytes in base64url that issuers derive keys from. */
  readonly sealedSecret: string;
  /** Newest first. */
  readonly keys: readonly SigningKeySpec[];
  readonly clients: readonly ClientSpec[];
  /** One of each name. */
  readonly idps: readonly IdpSpec[];
}

export interface SmtpSpec {
  readonly host: string;
  readonly port: number;
  /** Empty for none, as the password. */
  readonly username: string;
  /** Empty for none. */
  readonly sealedPassword: DestinedSecret | "";
  readonly fromAddress: string;
  readonly fromName: string;
  /** PEM; empty for the public authorities. */
  readonly caCertificate: string;
}

export interface ThemeSpec {
  readonly displayName?: string;
  readonly brandColor?: string;
  readonly logoUrl?: string;
}

export interface SigningKeySpec {
  readonly kid: string;
  /** A standby key is in the JWKS and signs nothing yet. */
  readonly status: "standby" | "active" | "retiring" | "retired";
  /** JWK, JSON. */
  readonly publicJwk: string;
  /** PKCS #8 PEM, sealed; empty once it signs no more. */
  readonly sealedPrivateKey: string;
  readonly activatedAt: number | null;
  readonly retiresAt: number | null;
}

export interface ClientSpec {
  readonly clientId: string;
  readonly name: string;
  readonly type: "public" | "confidential";
  /** SHA-256 of the secret, hex; empty of a public one. */
  readonly secretHash: string;
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly requirePkce: boolean;
}

/** Another provider that users may sign in with. */
export interface IdpSpec {
  readonly provider: "google" | "oidc";
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly sealedClientSecret: DestinedSecret;
  readonly scopes: readonly string[];
  /** PEM; empty for the public authorities. */
  readonly caCertificate: string;
}

/** What has to be there before it is Active, in this order. */
export type AuthStep = "access" | "schema" | "erasures" | "mail" | "name" | "issuer";

export interface AuthStatus {
  readonly state: AuthState;
  readonly since: number;
  /** The steps that were done, in order; begun anew by each enable. */
  readonly done: readonly AuthStep[];
  /** When the last of them was. */
  readonly progressAt: number;
  /** Of the schema in the database; null before it is there. */
  readonly schemaVersion: number | null;
  readonly failureReason: string | null;
  /** Of the data over which erasures were done again last, as `dataOf` names them; null: of none yet. */
  readonly erasedOver: string | null;
  /** Why issuers cannot send mails; null while they can. */
  readonly mailTrouble: string | null;
  /** Addresses that get no mails because the app has sent those of its hour; null while it has room. */
  readonly mailLimit: MailLimit | null;
  readonly health: AuthHealthStatus;
}

/** Addresses without a user alone, or everybody. */
export type MailLimit = "strangers" | "everybody";

export interface AuthHealthStatus {
  /** Null while all is well. */
  readonly reason: string | null;
  readonly since: number;
}

export const clientsMax = 20;

/** Host of the issuer. */
export function hostOf({ customDomain, fallbackDomain }: AuthSpec): string {
  return customDomain ?? fallbackDomain;
}

/** Are its hosts served? */
export function isServed({ status }: AuthObject): boolean {
  return status.schemaVersion !== null && (status.state === "Active" || status.state === "ProvisioningSchema");
}

/** Is it anything but off? */
export function isOn({ status }: AuthObject): boolean {
  return status.state === "Active" || status.state === "ProvisioningSchema";
}

/** After an event, and what comes with it; undefined where the event means nothing in its state. */
export function afterEvent(
  auth: AuthObject,
  event: AuthEvent,
  now: number,
  failureReason: string | null = null,
): { readonly after: AuthObject; readonly effect: AuthEffect } | undefined {
  const row = next(authLifecycle, auth.status.state, event);
  if (row === undefined) return undefined;
  const metadata = { ...auth.metadata, updatedAt: now };
  return {
    after: { ...auth, metadata, status: { ...auth.status, state: row[2], since: now, failureReason } },
    effect: row[3],
  };
}

/** With another spec. */
export function changedAuth(auth: AuthObject, change: Partial<AuthSpec>, now: number): AuthObject {
  return { ...auth, metadata: nextMetadata(auth.metadata, now), spec: { ...auth.spec, ...change } };
}
