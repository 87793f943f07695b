import { next } from "@holdfast/common/machine.ts";
import type { DestinedSecret } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { type AuthEffect, type AuthEvent, type AuthState, authLifecycle } from "./auth-lifecycle.ts";

/** The sign-in of an app. Its id is the id of the app, which therefore has one at most. */
export type AuthObject = Resource<AuthSpec, AuthStatus>;

export const authKind = defineKind<AuthObject>("app-auth", {
  deletedWithOrganization: true,
  indexes: [serviceOfAuth],
  storedNames: { "status.replayedDataId": "erasedOver", "status.mailError": "mailTrouble" },
});

/** Index: the sign-ins whose users are in a service. */
export function serviceOfAuth({ spec }: AuthObject): string {
  return spec.serviceId;
}

/**
 * Secrets are sealed with the key of the object; passwords of mail servers and providers also for their destination.
 */
export interface AuthSpec {
  /** Public id of the sign-in, which never changes. */
  readonly authId: string;
  readonly attachmentId: string;
  readonly serviceId: string;
  readonly databaseName: string;
  /** Host name on the platform's domain. */
  readonly fallbackDomain: string;
  /** Host name of the issuer; null: the fallback domain. */
  readonly customDomain: string | null;
  readonly smtp: SmtpSpec;
  /** The theme; absent members have defaults (`themeOf`). */
  readonly theme: ThemeSpec;
  readonly signUp: "open" | "closed";
  readonly mailsPerHour: number;
  /** Role of the issuers in the engine, with its sealed password and SCRAM verifier. */
  readonly role: string;
  readonly sealedPassword: string;
  readonly sealedVerifier: string;
  /** Sealed secret from which issuers derive keys: 32 bytes in base64url. */
  readonly sealedSecret: string;
  /** Signing keys, newest first. */
  readonly keys: readonly SigningKeySpec[];
  readonly clients: readonly ClientSpec[];
  /** Identity providers, at most one entry per provider. */
  readonly idps: readonly IdpSpec[];
}

export interface SmtpSpec {
  readonly host: string;
  readonly port: number;
  /** Empty: no authentication. */
  readonly username: string;
  /** Empty if there is no user name. */
  readonly sealedPassword: DestinedSecret | "";
  readonly fromAddress: string;
  readonly fromName: string;
  /** PEM; empty: the public authorities. */
  readonly caCertificate: string;
}

export interface ThemeSpec {
  readonly displayName?: string;
  readonly brandColor?: string;
  readonly logoUrl?: string;
}

export interface SigningKeySpec {
  readonly kid: string;
  /** A standby key is in the JWKS but signs nothing yet. */
  readonly status: "standby" | "active" | "retiring" | "retired";
  /** JWK as JSON. */
  readonly publicJwk: string;
  /** Sealed PKCS #8 PEM; empty if the key is retiring or retired. */
  readonly sealedPrivateKey: string;
  readonly activatedAt: number | null;
  readonly retiresAt: number | null;
}

export interface ClientSpec {
  readonly clientId: string;
  readonly name: string;
  readonly type: "public" | "confidential";
  /** SHA-256 of the secret in hex; empty for a public client. */
  readonly secretHash: string;
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly requirePkce: boolean;
}

/** An identity provider with which users can sign in. */
export interface IdpSpec {
  readonly provider: "google" | "oidc";
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly sealedClientSecret: DestinedSecret;
  readonly scopes: readonly string[];
  /** PEM; empty: the public authorities. */
  readonly caCertificate: string;
}

/** Preparation steps before the sign-in is Active, in this order. */
export type AuthStep = "access" | "schema" | "erasures" | "mail" | "name" | "issuer";

export interface AuthStatus {
  readonly state: AuthState;
  readonly since: number;
  /** Completed steps, in order; reset by each enable. */
  readonly done: readonly AuthStep[];
  /** Time of the last completed step, in milliseconds since 1970. */
  readonly progressAt: number;
  /** Version of the schema in the database; null before it exists. */
  readonly schemaVersion: number | null;
  readonly failureReason: string | null;
  /** The data (`dataIdOf`) over which erasures were last replayed; null before the first time. */
  readonly replayedDataId: string | null;
  /** Reason why issuers cannot send mails; null while they can. */
  readonly mailError: string | null;
  /** Addresses that get no mails because the app has used its hourly limit; null below the limit. */
  readonly mailLimit: MailLimit | null;
  readonly health: AuthHealthStatus;
}

/** `strangers`: only addresses without a user; `everybody`: all addresses, except in browsers that signed in before. */
export type MailLimit = "strangers" | "everybody";

export interface AuthHealthStatus {
  /** Null while healthy. */
  readonly reason: string | null;
  readonly since: number;
}

export const clientsMax = 20;

/** Host name of the issuer. */
export function hostOf({ customDomain, fallbackDomain }: AuthSpec): string {
  return customDomain ?? fallbackDomain;
}

/** True if issuers serve the sign-in. */
export function isServed({ status }: AuthObject): boolean {
  return status.schemaVersion !== null && (status.state === "Active" || status.state === "ProvisioningSchema");
}

/** True in all states except Failed and Disabled. */
export function isEnabled({ status }: AuthObject): boolean {
  return status.state === "Active" || status.state === "ProvisioningSchema";
}

/** True if the domain is the host of an issuer that serves. */
export function isIssuerHost(auth: AuthObject | undefined, domain: string): boolean {
  return auth !== undefined && isEnabled(auth) && auth.spec.customDomain === domain;
}

/** The object after an event, and the event's effect; undefined if the event does not apply in the current state. */
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

/** The object with a changed spec. */
export function changedAuth(auth: AuthObject, change: Partial<AuthSpec>, now: number): AuthObject {
  return { ...auth, metadata: nextMetadata(auth.metadata, now), spec: { ...auth.spec, ...change } };
}

/**
 * Identifies the data that the users are in, as `<service>/<database>/<restore>#<term>`. Other data than before may
 * contain users who were erased since.
 */
export function dataIdOf({ metadata, spec, status }: ManagedServiceObject, { spec: auth }: AuthObject): string {
  return `${metadata.id}/${auth.databaseName}/${spec.origin?.restoreId ?? ""}#${status.term}`;
}

/** True if the two data ids differ at most in the term: after a failover only recent changes can be missing. */
export function differsOnlyInPrimary(replayedDataId: string | null, dataId: string): boolean {
  return replayedDataId !== null && replayedDataId.split("#")[0] === dataId.split("#")[0];
}
