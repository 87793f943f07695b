import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import { type AppSignIn, AppSignInSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { type AuthObject, hostOf, isServed, dataIdOf, differsOnlyInPrimary } from "./auth.ts";
import { issuerUrlOf, themeOf } from "./auth-message.ts";
import { type AuthSecrets, mailServerOf } from "./auth-secrets.ts";
import { idpDestinationOf } from "./idp.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

export interface SignInDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly secrets: AuthSecrets;
  readonly issuerPort: number;
  readonly log: Log;
}

/**
 * Returns a function that lists all served apps for issuers. An unchanged app is the same object as before, and its
 * secrets are not opened again.
 */
export function createSignIns(deps: SignInDeps): (auths: Iterable<Stored<AuthObject>>) => AppSignIn[] {
  const cache = new WeakMap<Stored<AuthObject>, { readonly from: string; readonly app: AppSignIn }>();
  return (auths) =>
    [...auths].flatMap((stored) => {
      const primary = isServed(stored.object) ? primaryIn(stored.object, deps) : undefined;
      if (primary === undefined) return [];
      const from = JSON.stringify(primary);
      const before = cache.get(stored);
      if (before?.from === from) return [before.app];
      try {
        const app = signInOf(stored, primary, deps);
        cache.set(stored, { from, app });
        return [app];
      } catch (error) {
        // The error concerns one app: serve the others.
        deps.log.error("sign-in not served", { app: stored.object.metadata.id, error: String(error) });
        return [];
      }
    });
}

interface Primary {
  readonly address: string;
  readonly port: number;
  readonly hostname: string;
}

/** The primary with the users; undefined if the service is deleted or erasures are not replayed yet. */
function primaryIn(auth: AuthObject, { services, machines }: SignInDeps): Primary | undefined {
  const { spec, status } = auth;
  const service = services.get(spec.serviceId)?.object;
  if (service === undefined) return undefined;
  // Over restored data, users can sign in only after the erasures are replayed.
  if (
    status.replayedDataId === null
      ? status.state !== "Active"
      : !differsOnlyInPrimary(status.replayedDataId, dataIdOf(service, auth))
  )
    return undefined;
  const { id, hostname } = taskTarget(service);
  return { address: machines.get(id)?.object.status.address ?? "", port: service.spec.port, hostname };
}

/** The complete message about an app except its certificate, with opened secrets. */
function signInOf(stored: Stored<AuthObject>, primary: Primary, { secrets, issuerPort }: SignInDeps): AppSignIn {
  const { metadata, spec } = stored.object;
  const open = (sealed: string) => secrets.open(metadata.id, sealed);
  const { fromAddress, fromName } = spec.smtp;
  return create(AppSignInSchema, {
    appId: metadata.id,
    version: stored.modRevision,
    issuerUrl: issuerUrlOf(hostOf(spec), issuerPort),
    host: hostOf(spec),
    database: {
      name: spec.databaseName,
      role: spec.role,
      password: open(spec.sealedPassword),
      ...primary,
    },
    smtp: { ...mailServerOf(metadata.id, spec.smtp, secrets), fromAddress, fromName },
    theme: themeOf(metadata.name, spec.theme),
    mailTrouble: stored.object.status.mailError !== null,
    mailLimited: stored.object.status.mailLimit !== null,
    mailLimitedForUsers: stored.object.status.mailLimit === "everybody",
    signUpOpen: spec.signUp === "open",
    mailsPerHour: spec.mailsPerHour,
    secret: open(spec.sealedSecret),
    keys: spec.keys
      .filter(({ status }) => status !== "retired")
      .map(({ kid, status, publicJwk, sealedPrivateKey }) => ({
        kid,
        status,
        publicJwk,
        privateKey: status === "active" ? open(sealedPrivateKey) : "",
      })),
    idpProviders: spec.idps.map(({ sealedClientSecret, scopes, ...idp }) => ({
      ...idp,
      scopes: [...scopes],
      clientSecret: secrets.openFor(metadata.id, idpDestinationOf(idp), sealedClientSecret),
    })),
    clients: spec.clients.map(({ type, ...client }) => ({
      ...client,
      confidential: type === "confidential",
      redirectUris: [...client.redirectUris],
      postLogoutRedirectUris: [...client.postLogoutRedirectUris],
      allowedOrigins: [...client.allowedOrigins],
    })),
  });
}
