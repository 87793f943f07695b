import { createHash, randomBytes } from "node:crypto";
import type { MailServer } from "@holdfast/egress/mail-server.ts";
import type { NewAuthSmtp } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import {
  type DestinedSecret,
  openFor,
  type SecretBinding,
  type SecretDestination,
  secretAfter,
} from "#kernel/secrets/destined-secret.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { authKind, type SmtpSpec } from "./auth.ts";

/** Seals and opens the secrets of an app's sign-in; they cannot be opened for another app. */
export interface AuthSecrets {
  seal(appId: string, plain: string): string;
  open(appId: string, sealed: string): string;
  /** Opens a secret that is sent to a destination of the app owner's choice. */
  openFor(appId: string, destination: SecretDestination, sealed: DestinedSecret): string;
  /** The secret after a change. Throws INVALID_REQUEST if a stored secret would be sent to another destination. */
  after(appId: string, change: DestinedChange): DestinedSecret;
}

interface DestinedChange {
  readonly field: string;
  readonly provided: string | undefined;
  readonly stored: { readonly sealed: DestinedSecret; readonly destination: SecretDestination } | undefined;
  readonly destination: SecretDestination;
}

export function createAuthSecrets(sealer: Sealer): AuthSecrets {
  const bindingOf = (appId: string, destination: SecretDestination): SecretBinding => {
    const objectKey = keyOf(authKind, appId);
    return { objectKey, destination, legacyLabel: objectKey };
  };
  return {
    seal: (appId, plain) => sealer.seal(plain, keyOf(authKind, appId)),
    open: (appId, sealed) => (sealed === "" ? "" : sealer.open(sealed, keyOf(authKind, appId))),
    openFor: (appId, destination, sealed) => openFor(sealer, bindingOf(appId, destination), sealed),
    after: (appId, { stored, destination, ...change }) =>
      secretAfter(sealer, {
        ...change,
        stored: stored && { sealed: stored.sealed, binding: bindingOf(appId, stored.destination) },
        binding: bindingOf(appId, destination),
      }),
  };
}

/** 256 random bits in base64url, for clients and for keys of an issuer. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Stored hash of a client's secret; the secret is random, so a plain SHA-256 reveals nothing. */
export function secretHash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** The mail server of an app, with its password. */
export function mailServerOf(appId: string, smtp: SmtpSpec, secrets: Pick<AuthSecrets, "openFor">): MailServer {
  const { host, port, username, sealedPassword, caCertificate } = smtp;
  const password = sealedPassword === "" ? "" : secrets.openFor(appId, mailDestinationOf(smtp), sealedPassword);
  return { host, port, username, password, caCertificate };
}

/** Destination of a mail server's password. */
function mailDestinationOf({ host, port, username, caCertificate }: Omit<MailServer, "password">): SecretDestination {
  return { host, port, username, ca_certificate: caCertificate };
}

/**
 * The mail server of a request. A request without a password keeps the stored one if the server is unchanged; otherwise
 * throws INVALID_REQUEST for the password.
 */
export function smtpSpecOf(
  secrets: Pick<AuthSecrets, "after">,
  appId: string,
  { host, port, username = "", password, fromAddress, fromName, caCertificate = "" }: NewAuthSmtp,
  before: SmtpSpec | undefined,
): SmtpSpec {
  const destination = mailDestinationOf({ host, port, username, caCertificate });
  const sealed = before?.sealedPassword;
  const stored = before && sealed ? { sealed, destination: mailDestinationOf(before) } : undefined;
  const change = { field: "smtp.password", provided: password, stored, destination };
  const sealedPassword = username === "" ? "" : secrets.after(appId, change);
  return { host, port, username, sealedPassword, fromAddress, fromName, caCertificate };
}
