import { lookUp } from "@holdfast/common/look-up.ts";
import nodemailer, { type SentMessageInfo } from "nodemailer";
import type { EgressClient } from "./egress-client.ts";
import { EgressFailure } from "./egress-failure.ts";

/** A user's mail server. It is used only over TLS. */
export interface MailServer {
  readonly host: string;
  /** Port 465 uses implicit TLS, others STARTTLS. */
  readonly port: number;
  /** User name; empty for none, as the password. */
  readonly username: string;
  readonly password: string;
  /** Trusted authorities in PEM; empty for the public ones. */
  readonly caCertificate: string;
}

export interface OutgoingMail {
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  /** Local part of the Message-ID, the same for each attempt to send this mail. */
  readonly id: string;
}

/** A failure of a mail server, without the server's own text and without addresses. */
export class MailServerFailure extends Error {
  override readonly name = "MailServerFailure";
  /** True if the server refused only the recipient. */
  readonly isRecipientRefused: boolean;

  constructor(
    message: string,
    { isRecipientRefused = false, ...options }: ErrorOptions & { isRecipientRefused?: boolean } = {},
  ) {
    super(message, options);
    this.isRecipientRefused = isRecipientRefused;
  }
}

interface Deps {
  readonly egress: Pick<EgressClient, "connect">;
  readonly deadlineMs: number;
}

/** Connects, authenticates and disconnects. Throws MailServerFailure, or the signal's reason. */
export async function checkMailServer(server: MailServer, deps: Deps, signal: AbortSignal): Promise<void> {
  await withTransport(server, deps, signal, (transport) => transport.verify());
}

/** Sends a mail; resolves when the server accepted it. Throws MailServerFailure, or the signal's reason. */
export async function sendMailBy(
  server: MailServer,
  { id, from, to, subject, text, html }: OutgoingMail,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const domain = from.address.slice(from.address.indexOf("@") + 1);
  await withTransport(server, deps, signal, (transport) =>
    transport.sendMail({
      from,
      to: { name: "", address: to },
      subject,
      text,
      ...(html !== undefined && { html }),
      messageId: `<${id}@${domain}>`,
      headers: { "Auto-Submitted": "auto-generated" },
    }),
  );
}

interface Transport {
  verify(): Promise<unknown>;
  sendMail(mail: object): Promise<SentMessageInfo>;
}

async function withTransport(
  server: MailServer,
  { egress, deadlineMs }: Deps,
  signal: AbortSignal,
  work: (transport: Transport) => Promise<unknown>,
): Promise<void> {
  const { host, port, username: user, password: pass, caCertificate } = server;
  const deadline = AbortSignal.timeout(deadlineMs);
  const ending = AbortSignal.any([signal, deadline]);
  const ca = caCertificate === "" ? {} : { ca: caCertificate };
  const secured = port === 465;
  try {
    const connection = await egress.connect({ host, port, tls: secured ? ca : undefined, deadlineMs, signal: ending });
    const abort = () => connection.destroy(new Error("the mail was aborted"));
    ending.addEventListener("abort", abort, { once: true });
    try {
      await work(
        nodemailer.createTransport({
          host,
          port,
          disableFileAccess: true,
          disableUrlAccess: true,
          secure: secured,
          requireTLS: true,
          tls: ca,
          ...(user !== "" && { auth: { user, pass } }),
          name: "issuer.invalid",
          greetingTimeout: deadlineMs,
          socketTimeout: deadlineMs,
          getSocket: (_options: unknown, callback: (error: null, socket: object) => void) =>
            callback(null, { connection, secured }),
        }),
      );
    } finally {
      ending.removeEventListener("abort", abort);
      connection.destroy();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted)
      throw new MailServerFailure(`No response from the mail server within ${deadlineMs / 1_000} s.`);
    throw new MailServerFailure(reasonOf(error), { cause: error, isRecipientRefused: isRecipientRefused(error) });
  }
}

function isRecipientRefused(error: unknown): boolean {
  return error instanceof Error && "command" in error && error.command === "RCPT TO";
}

function reasonOf(error: unknown): string {
  if (error instanceof EgressFailure) return `The mail server could not be reached: ${error.message}`;
  const of = (name: string) => (error instanceof Error ? lookUp(error, name) : undefined);
  if (of("code") === "EAUTH") return "The mail server refused the user name and password.";
  if (of("code") === "ETLS" || of("code") === "ESOCKET")
    return "The mail server offers no TLS with a certificate that is trusted.";
  const responseCode = of("responseCode");
  return typeof responseCode === "number"
    ? `The mail server responded with ${responseCode}.`
    : "The mail server did not accept the mail.";
}
