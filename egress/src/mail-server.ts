import nodemailer, { type SentMessageInfo } from "nodemailer";
import type { EgressClient } from "./egress-client.ts";
import { EgressFailure } from "./egress-failure.ts";

/** A mail server of a user. It is spoken to over TLS, or not at all. */
export interface MailServer {
  readonly host: string;
  /** 465 speaks TLS at once, the others after STARTTLS. */
  readonly port: number;
  /** Empty for none, as the password. */
  readonly username: string;
  readonly password: string;
  /** PEM; empty for the public authorities. */
  readonly caCertificate: string;
}

export interface OutgoingMail {
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  /** Before the @ of its Message-ID: the same for the same mail, however often it is sent. */
  readonly id: string;
}

/** Why a server was of no use, in our own words: nothing of what it said, and no address. */
export class MailServerFailure extends Error {
  override readonly name = "MailServerFailure";
  /** It took everything but the one who was to get the mail. */
  readonly isOfRecipient: boolean;

  constructor(message: string, { isOfRecipient = false, ...options }: ErrorOptions & { isOfRecipient?: boolean } = {}) {
    super(message, options);
    this.isOfRecipient = isOfRecipient;
  }
}

interface Deps {
  readonly egress: Pick<EgressClient, "connect">;
  readonly deadlineMs: number;
}

/** Signs in to the server and out again. Throws MailServerFailure, or the reason of the signal. */
export async function checkMailServer(server: MailServer, deps: Deps, signal: AbortSignal): Promise<void> {
  await withTransport(server, deps, signal, (transport) => transport.verify());
}

/** Resolves when the server took the mail. Throws MailServerFailure, or the reason of the signal. */
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
    const abort = () => connection.destroy(new Error("the mail was given up"));
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
        }) as unknown as Transport,
      );
    } finally {
      ending.removeEventListener("abort", abort);
      connection.destroy();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) throw new MailServerFailure(`No answer of the mail server within ${deadlineMs / 1_000} s.`);
    throw new MailServerFailure(reasonOf(error), { cause: error, isOfRecipient: isOfRecipient(error) });
  }
}

function isOfRecipient(error: unknown): boolean {
  return error instanceof Error && "command" in error && error.command === "RCPT TO";
}

function reasonOf(error: unknown): string {
  if (error instanceof EgressFailure) return `The mail server could not be reached: ${error.message}`;
  const of = (name: string) =>
    error instanceof Error && name in error ? (error as unknown as Record<string, unknown>)[name] : undefined;
  if (of("code") === "EAUTH") return "The mail server refused the user name and password.";
  if (of("code") === "ETLS" || of("code") === "ESOCKET")
    return "The mail server offers no TLS with a certificate that is trusted.";
  const answered = of("responseCode");
  return typeof answered === "number"
    ? `The mail server answered ${answered}.`
    : "The mail server did not take the mail.";
}
