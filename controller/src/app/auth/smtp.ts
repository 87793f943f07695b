import type { MailServer } from "@holdfast/egress/mail-server.ts";
import type { SecretDestination } from "#kernel/secrets/destined-secret.ts";
import type { SmtpSpec } from "./auth.ts";
import type { AuthSecrets } from "./auth-secrets.ts";

/** The mail server of an app, with its password. */
export function mailServerOf(appId: string, smtp: SmtpSpec, secrets: Pick<AuthSecrets, "openFor">): MailServer {
  const { host, port, username, sealedPassword, caCertificate } = smtp;
  const password = sealedPassword === "" ? "" : secrets.openFor(appId, mailDestinationOf(smtp), sealedPassword);
  return { host, port, username, password, caCertificate };
}

/** Where the password of a mail server is sent. */
export function mailDestinationOf({
  host,
  port,
  username,
  caCertificate,
}: Omit<MailServer, "password">): SecretDestination {
  return { host, port, username, ca_certificate: caCertificate };
}
