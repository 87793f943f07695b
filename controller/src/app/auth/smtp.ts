import type { MailServer } from "@holdfast/egress/mail-server.ts";
import type { SmtpSpec } from "./auth.ts";
import type { AuthSecrets } from "./auth-secrets.ts";

/** The mail server of an app, with its password. */
export function mailServerOf(
  appId: string,
  { host, port, username, sealedPassword, caCertificate }: SmtpSpec,
  secrets: Pick<AuthSecrets, "open">,
): MailServer {
  return { host, port, username, password: secrets.open(appId, sealedPassword), caCertificate };
}
