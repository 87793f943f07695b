import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { authRoleOf } from "@holdfast/common/auth-schema/names.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import { MailServerFailure, sendMailBy } from "@holdfast/egress/mail-server.ts";
import {
  AppAuthService,
  AuthSignUp,
  type EnableAuthRequest,
  IssuerDomainChoice,
  type UpdateAuthRequest,
} from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { makePassword } from "#kernel/secrets/engine-password.ts";
import { scramSha256Verifier } from "#services/engine/scram-verifier.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, type Stored } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { type AppObject, type AttachmentSpec, appKind } from "../app/app.ts";
import type { AppAccess } from "../app/app-access.ts";
import { afterEvent, authKind, type AuthObject, type AuthSpec, changedAuth, type SmtpSpec } from "./auth.ts";
import { type AuthAccess, requireActive, type ChangeAuth } from "./auth-access.ts";
import { authEvent, keyRotated } from "./auth-events.ts";
import { authMessage, keyMessages } from "./auth-message.ts";
import { type AuthSecrets, newSecret, mailServerOf, smtpSpecOf } from "./auth-secrets.ts";
import { isAddress, smtpFaults, themeFaults, themeSpecOf, uriFaults } from "./checked-auth.ts";
import { clientHandlers } from "./client-api.ts";
import { idpHandlers } from "./idp-api.ts";
import { initialKeys, canRotate, newSigningKey, replacedKeys, rotatedKeys } from "./signing-keys.ts";

type UserHandlers = Pick<
  Handlers<typeof AppAuthService>,
  | "revokeAuthSession"
  | "eraseAuthUser"
  | "deleteAuthUser"
  | "createAuthUser"
  | "listAuthUsers"
  | "listAuthSessions"
  | "listAuthEvents"
>;

export interface AuthApiDeps {
  readonly auths: Collection<AuthObject>;
  readonly apps: AppAccess;
  readonly access: AuthAccess;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly secrets: AuthSecrets;
  readonly users: UserHandlers;
  readonly egress: Pick<EgressClient, "connect" | "check">;
  /** Domain of the platform's DNS zone. */
  readonly domain: string;
  readonly issuerPort: number;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
}

const mailMs = 15_000;
const mailsPerHour = 600;

/** The RPCs of an app's sign-in. They write the spec; the reconciler and the issuers apply it. */
export function createAuthApi(deps: AuthApiDeps): ServedService {
  const { auths, apps, access, secrets, clock, issuerPort } = deps;

  const change: ChangeAuth = (appId, call, { action, detail }, edit, more) =>
    mutate(deps, call, { action, kind: appKind.name, visibleIn: [auths] }, async (unit) => {
      const before = await access.getCurrent(appId, call);
      const after = changedAuth(before.object, edit(before.object), clock.now());
      unit.update(authKind, before, after);
      more?.(unit, after);
      return { id: appId, detail, result: after };
    });

  async function requireAllowed(
    { host, port }: { readonly host: string; readonly port: number },
    target: string,
    signal: AbortSignal,
  ): Promise<void> {
    await deps.egress.check({ host, port }, signal).catch((cause: unknown) => {
      if (!(cause instanceof EgressFailure)) throw cause;
      throw new HoldfastError(
        "TARGET_NOT_ALLOWED",
        `The ${target} has a forbidden address: issuers must not connect to it.`,
      );
    });
  }

  /** The custom domain of the request; null for the platform's domain. */
  function customDomainOf({ object }: Stored<AppObject>, request: EnableAuthRequest): string | null {
    const requested = request.customDomain?.toLowerCase();
    if (request.issuerDomainChoice !== IssuerDomainChoice.CUSTOM) {
      if (requested === undefined) return null;
      throw invalid({ field: "custom_domain", code: "invalid_value", detail: "needs issuer_domain_choice custom" });
    }
    const verified = object.spec.domains.filter(({ verifiedAt }) => verifiedAt !== null).map(({ name }) => name);
    if (requested === undefined && verified.length > 1)
      throw invalid({ field: "custom_domain", code: "required", detail: "must name one: the app has several domains" });
    const found = requested === undefined ? verified[0] : verified.find((name) => name === requested);
    if (found !== undefined) return found;
    const detail =
      requested === undefined ? "The app has no verified domain." : `${requested} is not a verified domain of the app.`;
    throw new HoldfastError("CUSTOM_DOMAIN_NOT_VERIFIED", detail);
  }

  function attachmentOf({ object }: Stored<AppObject>, attachmentId: string): AttachmentSpec {
    const attachment = object.spec.attachments.find(({ id }) => id === attachmentId);
    if (attachment === undefined)
      throw invalid({ field: "attachment_id", code: "unknown", detail: "is not an attachment of the app" });
    const service = deps.services.get(attachment.serviceId)?.object;
    if (service !== undefined && service.spec.databaseType !== "postgresql")
      throw new HoldfastError("ATTACHMENT_NOT_POSTGRESQL", `${service.spec.databaseType} cannot store users of apps.`);
    if (service?.status.state !== "Running")
      throw new HoldfastError("ATTACHMENT_UNHEALTHY", "The service of the attachment is not Running.");
    return attachment;
  }

  async function newSpec(
    app: AppObject,
    request: EnableAuthRequest,
    smtp: SmtpSpec,
    attachment: AttachmentSpec,
  ): Promise<AuthSpec> {
    const appId = app.metadata.id;
    const seal = (plain: string) => secrets.seal(appId, plain);
    const password = makePassword();
    const authId = deps.newId();
    const [active, standby] = await Promise.all([newSigningKey(seal), newSigningKey(seal)]);
    return {
      authId,
      attachmentId: attachment.id,
      serviceId: attachment.serviceId,
      databaseName: attachment.databaseName,
      fallbackDomain: `auth-${authId.replaceAll("-", "").slice(-12)}.${deps.domain}`,
      customDomain: null,
      smtp,
      theme: request.theme === undefined ? {} : themeSpecOf(request.theme),
      signUp: "open",
      mailsPerHour,
      role: authRoleOf(appId),
      sealedPassword: seal(password),
      sealedVerifier: seal(scramSha256Verifier(password)),
      sealedSecret: seal(newSecret()),
      keys: initialKeys(active, standby, clock.now()),
      clients: [
        {
          clientId: appId,
          name: app.metadata.name,
          type: "public",
          secretHash: "",
          redirectUris: initialRedirects(app, request),
          postLogoutRedirectUris: app.spec.homeUrl === null ? [] : [app.spec.homeUrl],
          allowedOrigins: app.spec.homeUrl === null ? [] : [new URL(app.spec.homeUrl).origin],
          requirePkce: true,
        },
      ],
      idps: [],
    };
  }

  /** Changes of the spec if sign-in is enabled again; issuer, role, secrets, keys and clients remain unchanged. */
  function reenabledSpec({ theme }: EnableAuthRequest, smtp: SmtpSpec, attachment: AttachmentSpec): Partial<AuthSpec> {
    return {
      attachmentId: attachment.id,
      serviceId: attachment.serviceId,
      databaseName: attachment.databaseName,
      smtp,
      ...(theme !== undefined && { theme: themeSpecOf(theme) }),
    };
  }

  const initialStatus = (now: number) => ({
    done: [],
    progressAt: now,
    schemaVersion: null,
    replayedDataId: null,
    mailError: null,
    mailLimit: null,
    health: { reason: null, since: now },
  });

  const handlers: Handlers<typeof AppAuthService> = {
    ...deps.users,
    ...clientHandlers({ access, change, newId: deps.newId }),
    ...idpHandlers({ access, change, secrets, requireAllowed, issuerPort }),

    async enableAuth(request, call) {
      const app = apps.require(request.appId, call);
      const { smtp } = request;
      if (smtp === undefined) throw new HoldfastError("SMTP_REQUIRED", "smtp must be given: sign-in is by mail.");
      const customDomain = customDomainOf(app, request);
      const attachment = attachmentOf(app, request.attachmentId);
      await requireAllowed(smtp, "mail server", call.signal);
      const smtpSpec = smtpSpecOf(secrets, request.appId, smtp, auths.get(request.appId)?.object.spec.smtp);
      const first = { ...(await newSpec(app.object, request, smtpSpec, attachment)), customDomain };
      return mutate(deps, call, { action: "app-auth.enable", kind: appKind.name, visibleIn: [auths] }, async (unit) => {
        const now = clock.now();
        const before = await auths.getCurrent(request.appId, call.signal);
        if (customDomain !== null) {
          // The commit requires that the domain is still verified for the app.
          const current = await apps.getCurrent(request.appId, call);
          customDomainOf(current, request);
          unit.onlyWhile({ key: keyOf(appKind, request.appId), modRevision: current.modRevision });
        }
        let after: AuthObject;
        if (before === undefined) {
          const { organizationId, name } = app.object.metadata;
          after = {
            metadata: newMetadata(request.appId, now, { name, organizationId }),
            spec: first,
            status: { state: "ProvisioningSchema", since: now, failureReason: null, ...initialStatus(now) },
          };
          unit.create(authKind, after);
        } else {
          const moved = afterEvent(before.object, "enableRequested", now);
          if (moved === undefined)
            throw new HoldfastError("AUTH_ALREADY_ENABLED", `The sign-in is ${before.object.status.state}.`);
          const change = reenabledSpec(
            request,
            smtpSpecOf(secrets, request.appId, smtp, before.object.spec.smtp),
            attachment,
          );
          const again = changedAuth(moved.after, { ...change, customDomain }, now);
          after = { ...again, status: { ...again.status, ...initialStatus(now) } };
          unit.update(authKind, before, after);
        }
        const response = { auth: authMessage(after, issuerPort), signingKeys: keyMessages(after.spec.keys) };
        return { id: request.appId, result: response };
      });
    },

    getAuth: async ({ appId }, call) => authMessage(access.require(appId, call).object, issuerPort),

    async updateAuth(request, call) {
      const paths = changedPaths(request);
      access.require(request.appId, call);
      const { smtp, theme } = request;
      if (smtp !== undefined) await requireAllowed(smtp, "mail server", call.signal);
      const after = await change(request.appId, call, { action: "app-auth.update" }, (before) => ({
        ...(paths.has("smtp") &&
          smtp !== undefined && { smtp: smtpSpecOf(secrets, request.appId, smtp, before.spec.smtp) }),
        ...(paths.has("theme") && { theme: theme === undefined ? {} : themeSpecOf(theme) }),
        ...(paths.has("sign_up") && { signUp: request.signUp === AuthSignUp.CLOSED ? "closed" : "open" }),
        ...(paths.has("mails_per_hour") && { mailsPerHour: request.mailsPerHour ?? mailsPerHour }),
      }));
      return authMessage(after, issuerPort);
    },

    disableAuth: ({ appId }, call) =>
      mutate(deps, call, { action: "app-auth.disable", kind: appKind.name, visibleIn: [auths] }, async (unit) => {
        const before = await access.getCurrent(appId, call);
        const moved = afterEvent(before.object, "disableRequested", clock.now());
        if (moved === undefined) {
          if (before.object.status.state === "Disabled") return { unchanged: authMessage(before.object, issuerPort) };
          requireActive(before.object);
          return { unchanged: authMessage(before.object, issuerPort) };
        }
        unit.update(authKind, before, moved.after);
        const event = authEvent(moved.effect, moved.after);
        if (event !== undefined) unit.event(event);
        return { id: appId, result: authMessage(moved.after, issuerPort) };
      }),

    async rotateAuthKey({ appId, emergency = false }, call) {
      access.active(appId, call);
      const seal = (plain: string) => secrets.seal(appId, plain);
      const [standby, active] = await Promise.all([newSigningKey(seal), newSigningKey(seal)]);
      const action = emergency ? "app-auth.rotate-key.emergency" : "app-auth.rotate-key";
      const { spec } = await change(
        appId,
        call,
        { action },
        (auth) => {
          requireActive(auth);
          const now = clock.now();
          const { keys } = auth.spec;
          if (!emergency && !canRotate(keys))
            throw new HoldfastError(
              "WRONG_STATE",
              "Eight keys retire within 24 hours. Wait until one of them has retired, or send emergency=true.",
            );
          return { keys: emergency ? replacedKeys(keys, active, standby, now) : rotatedKeys(keys, standby, now) };
        },
        (unit, after) => unit.event(keyRotated(after, emergency)),
      );
      const [signingKey] = keyMessages(spec.keys);
      return signingKey === undefined ? {} : { signingKey };
    },

    listAuthKeys: async ({ appId }, call) => ({ keys: keyMessages(access.require(appId, call).object.spec.keys) }),

    async testAuthSmtp({ appId, to }, call) {
      const { metadata, spec } = access.require(appId, call).object;
      const mail = {
        id: deps.newId(),
        from: { name: spec.smtp.fromName, address: spec.smtp.fromAddress },
        to,
        subject: "Test of your mail server",
        text: `Mails of sign-ins to ${metadata.name} will be sent like this one.\n`,
      };
      try {
        const server = mailServerOf(appId, spec.smtp, secrets);
        await sendMailBy(server, mail, { egress: deps.egress, deadlineMs: mailMs }, call.signal);
        return { success: true };
      } catch (error) {
        if (error instanceof MailServerFailure) return { success: false, error: error.message };
        throw error;
      }
    },
  };
  return serve(AppAuthService, handlers, {
    enableAuth: (request) => [
      ...settingsFaults(request),
      ...uriFaults("redirect_uris", request.redirectUris?.values ?? []),
    ],
    updateAuth: settingsFaults,
    testAuthSmtp: ({ to }) =>
      isAddress(to)
        ? []
        : [{ field: "to", pointer: "/to", code: "invalid_value", detail: "must be one plain address" }],
  });
}

/** The faults of a mail server and a theme, which one response has together. */
function settingsFaults({ smtp, theme }: Pick<EnableAuthRequest, "smtp" | "theme">): readonly FieldFault[] {
  return [...(smtp === undefined ? [] : smtpFaults(smtp)), ...(theme === undefined ? [] : themeFaults(theme))];
}

function initialRedirects(app: AppObject, { redirectUris }: EnableAuthRequest): readonly string[] {
  if (redirectUris !== undefined && redirectUris.values.length > 0) return redirectUris.values;
  const home = app.spec.homeUrl;
  return home === null ? [] : [`${home.replace(/\/$/, "")}/auth/callback`];
}

const changeable = new Set(["smtp", "theme", "sign_up", "mails_per_hour"]);

function changedPaths(request: UpdateAuthRequest): ReadonlySet<string> {
  const paths = new Set((request.updateMask?.paths ?? []).map((path) => path.split(".")[0] ?? ""));
  if (paths.size === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  const unknownPath = [...paths].find((path) => !changeable.has(path));
  if (unknownPath !== undefined)
    throw invalid({ field: unknownPath, code: "unknown_field", detail: "cannot be changed" });
  return paths;
}
