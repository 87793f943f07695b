import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AppAuth,
  AppAuthSchema,
  type AuthClient,
  AuthClientSchema,
  AuthClientType,
  type AuthIdpProvider,
  AuthIdpProviderSchema,
  type AuthKey,
  AuthKeySchema,
  AuthKeyStatus,
  AuthSignUp,
  AuthStatus,
} from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import {
  type AuthObject,
  type AuthStatus as AuthStatusSpec,
  type ClientSpec,
  hostOf,
  type IdpSpec,
  type SigningKeySpec,
  type ThemeSpec,
} from "./auth.ts";
import type { AuthState } from "./auth-lifecycle.ts";

const statuses: Readonly<Record<AuthState, AuthStatus>> = {
  ProvisioningSchema: AuthStatus.PROVISIONING_SCHEMA,
  Active: AuthStatus.ACTIVE,
  Failed: AuthStatus.FAILED,
  Disabled: AuthStatus.DISABLED,
};

const defaultBrandColor = "#1f5fbf";

/** URL of an issuer, without the port if it is 443. */
export function issuerUrlOf(host: string, port: number): string {
  return port === 443 ? `https://${host}` : `https://${host}:${port}`;
}

/** The theme of an app. Defaults of absent fields are the app's name and the platform's color. */
export function themeOf(appName: string, theme: ThemeSpec): ThemeSpec & Required<Omit<ThemeSpec, "logoUrl">> {
  return { displayName: appName, brandColor: defaultBrandColor, ...theme };
}

/** The health of an issuer that serves; "unknown" for any other. */
function healthOf({ state, health }: AuthStatusSpec): "healthy" | "degraded" | "unknown" {
  if (state !== "Active") return "unknown";
  return health.reason === null ? "healthy" : "degraded";
}

/** The message of an app's sign-in, without secrets. */
export function authMessage({ metadata, spec, status }: AuthObject, issuerPort: number): AppAuth {
  const { host, port, fromAddress, fromName } = spec.smtp;
  return create(AppAuthSchema, {
    id: spec.authId,
    appServiceId: metadata.id,
    databaseServiceId: spec.serviceId,
    attachmentId: spec.attachmentId,
    issuerUrl: issuerUrlOf(hostOf(spec), issuerPort),
    fallbackDomain: spec.fallbackDomain,
    status: statuses[status.state],
    ...(status.schemaVersion !== null && { schemaVersionApplied: String(status.schemaVersion) }),
    theme: themeOf(metadata.name, spec.theme),
    idpProviders: spec.idps.map((idp) => idpMessage(idp, issuerUrlOf(hostOf(spec), issuerPort))),
    ...(status.state === "Failed" && status.failureReason !== null && { failureReason: status.failureReason }),
    ...(spec.customDomain !== null && { customDomain: spec.customDomain }),
    smtp: { host, port, fromAddress, fromName },
    health: {
      status: healthOf(status),
      ...(status.health.reason !== null && { reason: status.health.reason }),
      since: timestampFromMs(status.health.since),
    },
    signUp: spec.signUp === "open" ? AuthSignUp.OPEN : AuthSignUp.CLOSED,
    mailsPerHour: spec.mailsPerHour,
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  });
}

const keyStatuses = {
  active: AuthKeyStatus.ACTIVE,
  retiring: AuthKeyStatus.RETIRING,
  retired: AuthKeyStatus.RETIRED,
} as const;

/** The keys that have signed tokens; the standby key is internal. */
export function keyMessages(keys: readonly SigningKeySpec[]): AuthKey[] {
  return keys.flatMap(({ kid, status, activatedAt, retiresAt }) => {
    if (status === "standby") return [];
    return [
      create(AuthKeySchema, {
        kid,
        algorithm: "RS256",
        status: keyStatuses[status],
        activatedAt: timestampFromMs(activatedAt ?? 0),
        ...(retiresAt !== null && { retiresAt: timestampFromMs(retiresAt) }),
      }),
    ];
  });
}

export function clientMessage(client: ClientSpec, secret?: string): AuthClient {
  const { clientId, name, type, redirectUris, postLogoutRedirectUris, allowedOrigins, requirePkce } = client;
  return create(AuthClientSchema, {
    clientId,
    name,
    type: type === "public" ? AuthClientType.PUBLIC : AuthClientType.CONFIDENTIAL,
    redirectUris: [...redirectUris],
    postLogoutRedirectUris: [...postLogoutRedirectUris],
    allowedOrigins: [...allowedOrigins],
    requirePkce,
    ...(secret !== undefined && { clientSecret: secret }),
  });
}

/** The message of an identity provider, without its client secret. */
export function idpMessage({ provider, issuerUrl, clientId, scopes }: IdpSpec, ownUrl: string): AuthIdpProvider {
  const callbackUrl = `${ownUrl}/callback/${provider}`;
  return create(AuthIdpProviderSchema, { provider, issuerUrl, clientId, scopes: [...scopes], callbackUrl });
}
