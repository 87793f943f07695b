import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { sendMailBy } from "@holdfast/egress/mail-server.ts";
import type { App } from "../app.ts";
import { mailSecretsOf } from "./mail-secrets.ts";

const deadlineMs = 20_000;

/** Sends a mail, and writes down that it was; false where it is owed no more. Throws MailServerFailure; it stays owed then. */
export async function sendMail(app: App, id: string, signal: AbortSignal): Promise<boolean> {
  const { config, database, keys, egress } = app;
  const [owed] = await database.rows<{ email: string }>(
    `SELECT email FROM ${s}.login_tokens
     WHERE id = $1 AND is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()`,
    [id],
  );
  if (owed === undefined || config.smtp === undefined) return false;
  const { fromAddress, fromName, ...server } = config.smtp;
  const { code, linkToken } = mailSecretsOf(id, keys);
  const name = config.theme?.displayName ?? "";
  const link = `${config.issuerUrl}/link?mail=${id}&token=${linkToken}`;
  const text = [
    `Your code to sign in to ${name}: ${code}`,
    "",
    "Type it in the browser where you began. In that browser you can open this link instead:",
    "",
    link,
    "",
    "Both are good for 15 minutes and work once. If you did not want to sign in, do nothing.",
    "",
  ].join("\n");
  const from = { name: fromName, address: fromAddress };
  const mail = { id, from, to: owed.email, subject: `${code} is your code for ${name}`, text };
  await sendMailBy(server, mail, { egress, deadlineMs }, signal);
  await database.rows(`UPDATE ${s}.login_tokens SET sent_at = now() WHERE id = $1 AND sent_at IS NULL`, [id]);
  return true;
}
