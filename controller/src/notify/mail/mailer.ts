import { readFile } from "node:fs/promises";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import nodemailer from "nodemailer";
import { attemptMs } from "../webhook/retry-policy.ts";
import { isMailAddress } from "./mail-address.ts";
import type { MailSettings } from "./mail-settings.ts";

/** A mail to one address. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** Stable id of the mail, the same for every attempt; the part of its Message-ID before the @. */
  readonly id: string;
  /** Id of the mail's thread (References header). */
  readonly thread?: string;
}

/** Sends mail through the mail server of the operator. */
export interface Mailer {
  /** Resolves when the server has accepted the mail. Throws MailFailure, or the reason of the signal. */
  send(mail: Mail, signal: AbortSignal): Promise<void>;
}

/** A mail was not accepted. The message is for users and has no text of the server. */
export class MailFailure extends Error {
  override readonly name = "MailFailure";
}

/** Number of concurrent sessions with the server; further mails wait within their own deadline. */
const sessionsMax = 8;

interface Deps {
  /** The client for servers that operators configure. */
  readonly egress: Pick<EgressClient, "connect">;
  readonly log: Log;
}

/**
 * Creates the mailer; undefined if no mail server is set. Throws for invalid settings. The files with the password and
 * CA certificates are read for each session.
 */
export function createMailer(settings: MailSettings, { egress, log }: Deps): Mailer | undefined {
  const { smtpHost: host, smtpPort: port, smtpTls, smtpUser: user, smtpFrom: from } = settings;
  if (host === "") return undefined;
  if (!isMailAddress(from))
    throw new Error("HOLDFAST_SMTP_FROM: must be one plain address, such as alerts@example.com");
  if (user !== "" && settings.smtpPasswordFile === "")
    throw new Error("HOLDFAST_SMTP_PASSWORD_FILE: must be set if HOLDFAST_SMTP_USER is");
  const domain = from.slice(from.indexOf("@") + 1);
  const sessions = createSemaphore(sessionsMax);

  async function session(signal: AbortSignal) {
    const ca = settings.smtpCa === "" ? {} : { ca: await readFile(settings.smtpCa, "utf8") };
    const pass = user === "" ? "" : (await readFile(settings.smtpPasswordFile, "utf8")).replace(/\r?\n$/, "");
    const isImplicit = smtpTls === "implicit";
    const tls = isImplicit ? ca : undefined;
    const connection = await egress.connect({ host, port, tls, deadlineMs: attemptMs, signal });
    const transport = nodemailer.createTransport({
      host,
      port,
      disableFileAccess: true,
      disableUrlAccess: true,
      secure: isImplicit,
      requireTLS: smtpTls === "starttls",
      ignoreTLS: smtpTls === "none",
      tls: ca,
      ...(user !== "" && { auth: { user, pass } }),
      name: domain,
      greetingTimeout: attemptMs,
      socketTimeout: attemptMs,
      getSocket: (_options, callback) => callback(null, { connection, secured: isImplicit }),
    });
    return { transport, connection };
  }

  async function sendNow({ to, subject, text, html, id, thread }: Mail, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { transport, connection } = await session(signal);
    try {
      await transport.sendMail({
        from,
        to,
        subject: headerText(subject),
        text,
        html,
        messageId: `<${id}@${domain}>`,
        ...(thread !== undefined && { references: `<${thread}@${domain}>` }),
        headers: { "Auto-Submitted": "auto-generated" },
        signal,
      });
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  return {
    async send(mail, signal) {
      const deadline = AbortSignal.timeout(attemptMs);
      const ending = AbortSignal.any([signal, deadline]);
      try {
        await sessions.run(() => sendNow(mail, ending), { signal: ending });
      } catch (error) {
        signal.throwIfAborted();
        log.warn("mail not accepted", { error: String(error) });
        const late = `No response from the mail server within ${attemptMs / 1_000} s.`;
        throw new MailFailure(deadline.aborted ? late : reasonOf(error));
      }
    },
  };
}

/** One header line of at most 150 characters, without control characters. */
export function headerText(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const cut = line.slice(0, 150);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}

function reasonOf(error: unknown): string {
  if (error instanceof EgressFailure) return `The mail server could not be reached: ${error.message}`;
  const code = error instanceof Error && "responseCode" in error ? error.responseCode : undefined;
  return typeof code === "number"
    ? `The mail server responded with ${code}.`
    : "The mail server did not accept the mail.";
}
