import type { AddressInfo } from "node:net";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer } from "smtp-server";
import { createTestCertificate } from "../controller/test-certificate.ts";

/** A received mail, decoded by a third-party parser. */
export interface ReceivedMail {
  readonly to: readonly string[];
  /** True if it came over TLS. */
  readonly secure: boolean;
  readonly user: string | undefined;
  readonly email: Email;
  /** The raw text. */
  readonly raw: string;
}

export interface MailServer {
  readonly port: number;
  /** PEM of the authority of its certificate, which is for the address. */
  readonly ca: string;
  readonly received: ReceivedMail[];
  close(): Promise<void>;
}

export interface MailServerOptions {
  readonly user?: { readonly name: string; readonly password: string };
  readonly tls?: "starttls" | "implicit" | "none";
  /** Listen address; absent: a free port of 127.0.0.1. */
  readonly at?: { readonly host: string; readonly port: number };
  /** Rejects mail to an address by throwing. */
  readonly admit?: (address: string) => void | Promise<void>;
}

/** A real SMTP server that stores its mails. */
export async function startMailServer({
  user,
  tls = "starttls",
  at = { host: "127.0.0.1", port: 0 },
  admit,
}: MailServerOptions = {}): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  const { cert, key } = await createTestCertificate(undefined, at.host);
  const server = new SMTPServer({
    secure: tls === "implicit",
    key,
    cert,
    disabledCommands: tls === "none" ? ["STARTTLS"] : [],
    authOptional: user === undefined,
    allowInsecureAuth: tls === "none",
    onAuth({ username, password }, _session, callback) {
      if (username === user?.name && password === user?.password) callback(null, { user: username });
      else callback(new Error("wrong credential"));
    },
    onRcptTo({ address }, _session, callback) {
      Promise.resolve(address)
        .then(admit)
        .then(
          () => callback(),
          (error: Error) => callback(error),
        );
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
      stream.on("end", () => {
        const raw = Buffer.concat(chunks).toString("utf8");
        PostalMime.parse(raw).then((email) => {
          const to = session.envelope.rcptTo.map(({ address }) => address);
          received.push({ to, secure: session.secure, user: session.user?.toString(), email, raw });
          callback();
        }, callback);
      });
    },
  });
  // A client that disconnects midway is not a fault of the server.
  server.on("error", () => undefined);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(at.port, at.host, resolve);
  await promise;
  const { port } = server.server.address() as AddressInfo;
  return { port, ca: cert, received, close: () => new Promise((closed) => server.close(() => closed())) };
}
