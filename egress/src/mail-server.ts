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

interface Failure {
  readonly reason: string;
  readonly remedy: string;
}

/** A failure of a mail server, without the server's own text and without addresses. */
export class MailServerFailure extends Error {
  override readonly name = "MailServerFailure";
  /** True if the server refused only the recipient. */
  readonly isRecipientRefused: boolean;
  /** The remedy for the owner of the settings, as a sentence. */
  readonly remedy: string;

  constructor(
    { reason, remedy }: Failure,
    { isRecipientRefused = false, ...options }: ErrorOptions & { isRecipientRefused?: boolean } = {},
  ) {
    super(reason, options);
    this.isRecipientRefused = isRecipientRefused;
    this.remedy = remedy;
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
      throw new MailServerFailure({
        reason: `No response from the mail server within ${deadlineMs / 1_000} s.`,
        remedy: checkAddress,
      });
    throw new MailServerFailure(failureOf(error), { cause: error, isRecipientRefused: isRecipientRefused(error) });
  }
}

function isRecipientRefused(error: unknown): boolean {
  return error instanceof Error && "command" in error && error.command === "RCPT TO";
}

const checkAddress = "Check the host and the port of the mail server, and that it accepts connections from here.";

const checkTls = "Use a port with TLS, and the host name in the certificate of the mail server.";

function failureOf(error: unknown): Failure {
  if (error instanceof EgressFailure)
    return {
      reason: `The mail server could not be reached: ${error.message}`,
      remedy: error.kind === "tls" ? checkTls : checkAddress,
    };
  const of = (name: string) => (error instanceof Error ? lookUp(error, name) : undefined);
  if (of("code") === "EAUTH")
    return {
      reason: "The mail server refused the user name and password.",
      remedy: "Give those of an account that may send mail.",
    };
  if (of("code") === "ETLS" || of("code") === "ESOCKET")
    return { reason: "The mail server offers no TLS with a certificate that is trusted.", remedy: checkTls };
  const responseCode = of("responseCode");
  return typeof responseCode === "number"
    ? { reason: `The mail server responded with ${responseCode}.`, remedy: "Read the log of the mail server." }
    : { reason: "The mail server did not accept the mail.", remedy: checkAddress };
}
