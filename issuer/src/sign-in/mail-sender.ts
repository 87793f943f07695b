import type { MessageInitShape } from "@bufbuild/protobuf";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { MailServerFailure, sendMailBy } from "@holdfast/egress/mail-server.ts";
import type { MailReportSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import type { DerivedKeys } from "../derived-keys.ts";

type Report = MessageInitShape<typeof MailReportSchema>;

/** The limit of mails that an app has reached. */
export interface MailLimited {
  /** True for the limit of all addresses; false for the limit of addresses without a user. */
  readonly forUsers: boolean;
}

/** Sends mails, and reports failing mail servers and reached limits to the controllers. */
export interface MailSender {
  reportLimit(app: App, limit: MailLimited): void;
  /** Reports the mail capacity of an app whose limit was reported before. */
  reportCapacity(app: App, capacity: "all" | "users" | "known-browsers"): void;
  /** Sends a pending mail. If sending fails, the mail remains pending; throws only if the database is unavailable. */
  send(app: App, mailId: string, signal: AbortSignal): Promise<void>;
}

export interface MailSenderDeps {
  readonly reportMail: (report: Report) => void;
  readonly onOutcome: (outcome: "sent" | "failed") => void;
  readonly monotonicMs: () => number;
}

/** Consecutive failures before a report; the next sweep of the app retries a pending mail. */
const failuresBeforeReport = 2;
/** A report is repeated until the app's configuration contains it. */
const limitReportIntervalMs = 10_000;

const sendDeadlineMs = 20_000;

export function createMailSender({ reportMail: report, onOutcome, monotonicMs }: MailSenderDeps): MailSender {
  /** Consecutive failures by app. */
  const failures = new Map<string, number>();
  /** Time of the last report, by app and limit. */
  const reportedAt = new Map<string, number>();
  return {
    reportLimit({ config: { appId, mailLimited, mailLimitedForUsers } }, { forUsers }) {
      const isReported = forUsers ? mailLimitedForUsers : mailLimited;
      const key = `${appId} ${forUsers}`;
      const sinceReportMs = monotonicMs() - (reportedAt.get(key) ?? Number.NEGATIVE_INFINITY);
      if (isReported || sinceReportMs < limitReportIntervalMs) return;
      reportedAt.set(key, monotonicMs());
      report({ limits: [{ appId, forUsers }] });
    },
    reportCapacity({ config: { appId, mailLimitedForUsers } }, capacity) {
      if (capacity === "all") report({ belowLimit: [appId] });
      else if (capacity === "users" && mailLimitedForUsers) report({ limits: [{ appId, forUsers: false }] });
    },
    async send(app, mailId, signal) {
      const { appId, mailTrouble } = app.config;
      try {
        if (!(await sendMail(app, mailId, signal))) return;
      } catch (error) {
        if (signal.aborted || !(error instanceof MailServerFailure)) throw error;
        onOutcome("failed");
        app.log.warn("mail not sent", { app: appId, reason: error.message });
        if (error.isRecipientRefused) return;
        const count = (failures.get(appId) ?? 0) + 1;
        failures.set(appId, count);
        if (count >= failuresBeforeReport && !mailTrouble) report({ troubles: [{ appId, reason: error.message }] });
        return;
      }
      onOutcome("sent");
      failures.delete(appId);
      if (mailTrouble) report({ working: [appId] });
    },
  };
}

/**
 * Sends a mail and records it; false if it is not pending. Throws MailServerFailure, after which it is still pending.
 */
async function sendMail(app: App, id: string, signal: AbortSignal): Promise<boolean> {
  const { config, database, keys, egress } = app;
  const [pendingMail] = await database.rows<{ email: string }>(
    `SELECT email FROM ${s}.login_tokens
     WHERE id = $1 AND is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()`,
    [id],
  );
  if (pendingMail === undefined || config.smtp === undefined) return false;
  const { fromAddress, fromName, ...server } = config.smtp;
  const { code, linkToken } = mailSecretsOf(id, keys);
  const name = config.theme?.displayName ?? "";
  const link = `${config.issuerUrl}/link?mail=${id}&token=${linkToken}`;
  const text = [
    `Your code to sign in to ${name}: ${code}`,
    "",
    "Enter it in the browser where you started. In that browser you can open this link instead:",
    "",
    link,
    "",
    "Both are valid for 15 minutes and work once. If you did not request this mail, ignore it.",
    "",
  ].join("\n");
  const from = { name: fromName, address: fromAddress };
  const mail = { id, from, to: pendingMail.email, subject: `${code} is your code for ${name}`, text };
  await sendMailBy(server, mail, { egress, deadlineMs: sendDeadlineMs }, signal);
  await database.rows(`UPDATE ${s}.login_tokens SET sent_at = now() WHERE id = $1 AND sent_at IS NULL`, [id]);
  return true;
}

/** Secrets in a mail. Both are derived from its id, so any replica can send the mail again and nothing is stored. */
interface MailSecrets {
  readonly code: string;
  readonly linkToken: string;
}

export function mailSecretsOf(id: string, keys: DerivedKeys): MailSecrets {
  const number = Buffer.from(keys.mac("mailed code", id), "base64url").readUIntBE(0, 6) % 1_000_000;
  return { code: String(number).padStart(6, "0"), linkToken: keys.mac("mailed link", id) };
}

/** Normalizes a typed code: removes spaces and dashes. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s-]/g, "");
}

const emailAddressPattern =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/;

/** True for a single plain address to which mail can be sent. */
export function isEmailAddress(text: string): boolean {
  return text.length <= 254 && emailAddressPattern.test(text);
}
