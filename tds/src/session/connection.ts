import { once } from "node:events";
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import type { Log } from "@holdfast/common/log.ts";
import { decodeLogin7 } from "../protocol/login7.ts";
import { type MessageLimit, PacketWriter, packetTypes } from "../protocol/packet.ts";
import { decodePreLogin, encodePreLogin, encryption } from "../protocol/pre-login.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";
import { negotiateVersion, tdsVersions, wireFormat } from "../protocol/tds-version.ts";
import { TlsTransport } from "../protocol/tls-transport.ts";
import { doneStatus, tokens, writeDone } from "../protocol/token.ts";
import { sqlErrorOf } from "../run/errors.ts";
import type { Session } from "../run/session.ts";
import { SqlError } from "../run/sql-error.ts";
import type { Usage } from "../run/usage.ts";
import { createMessageSource, type MessageSource } from "./message-source.ts";
import { serveRequest } from "./requests.ts";
import { Response } from "./response.ts";
import { acceptSignIn, type BackendAddress, program, refuseSignIn, signIn } from "./sign-in.ts";

export interface ConnectionOptions {
  readonly backend: BackendAddress;
  readonly secureContexts: SecureContexts;
  readonly log: Log;
  readonly signInMs: number;
  readonly usage: Usage;
}

/**
 * TLS contexts: `wrapped` allows up to 1.2, since clients of TDS 7.x do not read TLS 1.3's messages after the
 * handshake.
 */
export interface SecureContexts {
  readonly wrapped: SecureContext;
  readonly strict: SecureContext;
}

const tlsHandshakeByte = 0x16;
const requestBytesMax = 64 << 20;
const signInBytesMax = 128 << 10;

/** Limits of messages before the sign-in is complete. */
const signInLimit: MessageLimit = (type) => {
  if (type === packetTypes.preLogin) return 4_096;
  return type === packetTypes.login7 || type === packetTypes.sspi ? signInBytesMax : undefined;
};

const requestTypes: readonly number[] = [
  packetTypes.sqlBatch,
  packetTypes.rpc,
  packetTypes.attention,
  packetTypes.bulkLoad,
  packetTypes.transactionManager,
];
const requestLimit: MessageLimit = (type) => (requestTypes.includes(type) ? requestBytesMax : undefined);

/** Serves one client from its first byte to its end. It never rejects: an error ends only this connection. */
export async function serveConnection(socket: Socket, options: ConnectionOptions): Promise<void> {
  const deadline = setTimeout(() => socket.destroy(), options.signInMs);
  socket.on("error", () => {});
  socket.setNoDelay(true);
  let session: Session | undefined;
  try {
    const secure = await negotiateTls(socket, options.secureContexts);
    if (secure === undefined) return;
    session = await signInAndServe(secure.stream, secure.isStrict, options, () => clearTimeout(deadline));
  } catch (error) {
    const isClient = error instanceof ProtocolError || (error instanceof Error && "code" in error);
    if (isClient) options.log.debug("tds connection ended", { reason: String(error) });
    else options.log.error("tds connection failed", { error });
  } finally {
    clearTimeout(deadline);
    session?.backend.end();
    socket.destroySoon();
  }
}

interface SecureStream {
  readonly stream: TLSSocket;
  readonly isStrict: boolean;
}

/**
 * TLS inside of pre-login packets (7.x), or from the first byte (8.0). A client without TLS gets an error message, then
 * undefined is returned.
 */
async function negotiateTls(socket: Socket, contexts: SecureContexts): Promise<SecureStream | undefined> {
  const [first] = await firstEvent<[Buffer]>(socket, "data");
  socket.pause();
  if (first[0] === tlsHandshakeByte) {
    const transport = new TlsTransport(socket, { isWrapped: false, first });
    return { isStrict: true, stream: await handshake(transport, contexts.strict, ["tds/8.0"]) };
  }
  socket.unshift(first);
  const source = createMessageSource(socket, signInLimit, () => {});
  const request = await source.next();
  if (request?.type !== packetTypes.preLogin) {
    await refusePlain(socket);
    return undefined;
  }
  const { encryption: offered } = decodePreLogin(request.payload);
  const response = encodePreLogin({ encryption: encryption.required, mars: false }, program.version);
  socket.write(new PacketWriter().write(packetTypes.tabularResult, response, true));
  if (offered === encryption.notSupported) {
    // A client without TLS that signs in anyway gets an error with a message that its driver can display.
    if ((await source.next()) !== undefined) await refusePlain(socket);
    return undefined;
  }
  const transport = new TlsTransport(socket, { isWrapped: true, first: source.detach() });
  return { isStrict: false, stream: await handshake(transport, contexts.wrapped, []) };
}

async function refusePlain(socket: Socket): Promise<void> {
  const error = new SqlError(
    17_835,
    "The service accepts only encrypted connections: set Encrypt=true in the connection string.",
    { severity: 20 },
  );
  await refuseSignIn(new Response(socket), wireFormat(tdsVersions["7.4"]), error, socket);
}

async function handshake(
  transport: TlsTransport,
  secureContext: SecureContext,
  protocols: string[],
): Promise<TLSSocket> {
  const stream = new TLSSocket(transport, { isServer: true, secureContext, ALPNProtocols: protocols });
  await firstEvent(stream, "secure");
  return stream;
}

/** Rejects when the connection closes before the event. */
async function firstEvent<T extends unknown[]>(socket: Socket, event: string): Promise<T> {
  const closed = new AbortController();
  const close = () => closed.abort();
  socket.once("close", close);
  try {
    return (await once(socket, event, { signal: closed.signal })) as T;
  } finally {
    socket.off("close", close);
  }
}

async function signInAndServe(
  stream: TLSSocket,
  isStrict: boolean,
  options: ConnectionOptions,
  onSignIn: () => void,
): Promise<Session | undefined> {
  let limit = signInLimit;
  const source = createMessageSource(
    stream,
    (type) => limit(type),
    (last) => {
      if (last === undefined || last.hasEnded) confirm();
      else last.controller.abort();
    },
  );
  const response = new Response(stream);
  let format = wireFormat(tdsVersions["7.4"]);
  /** The confirmation of an attention is a message after the response, also after one that had ended before. */
  const confirm = () => {
    writeDone(response.tokens, format, tokens.done, { status: doneStatus.attention });
    response.end().catch(() => stream.destroy());
  };
  let request = await source.next();
  if (isStrict && request?.type === packetTypes.preLogin) {
    decodePreLogin(request.payload);
    response.tokens.bytes(encodePreLogin({ encryption: encryption.on, mars: false }, program.version));
    await response.end();
    request = await source.next();
  }
  if (request === undefined) return undefined;
  if (request.type !== packetTypes.login7) throw new ProtocolError(`the sign-in message has type ${request.type}`);
  const login = decodeLogin7(request.payload);
  const version = negotiateVersion(login.tdsVersion, isStrict);
  if (version === undefined) {
    const error = new SqlError(17_832, "The service supports TDS 7.1 and later versions; update the driver.", {
      severity: 20,
    });
    await refuseSignIn(response, wireFormat(tdsVersions["7.1"]), error, stream);
    return undefined;
  }
  format = wireFormat(version, options.backend.collation);
  let session: Session;
  try {
    session = await signIn(login, options, () => stream.destroy());
  } catch (error) {
    const failure = sqlErrorOf(error, 1);
    options.usage.error(failure);
    // The cause is only logged: the client must not learn whether the role or the password is wrong.
    options.log.info("tds sign-in refused", { number: failure.number, cause: failure.cause });
    await refuseSignIn(response, format, failure, stream);
    return undefined;
  }
  onSignIn();
  options.usage.sessions += 1;
  request.hasEnded = true;
  limit = requestLimit;
  try {
    await acceptSignIn(response, format, login, session.databaseName);
    await serveRequests(source, session, response, format, stream, confirm);
  } catch (error) {
    session.backend.end();
    throw error;
  } finally {
    options.usage.sessions -= 1;
  }
  return session;
}

async function serveRequests(
  source: MessageSource,
  session: Session,
  response: Response,
  format: ReturnType<typeof wireFormat>,
  stream: TLSSocket,
  confirm: () => void,
): Promise<void> {
  for (;;) {
    const message = await source.next();
    if (message === undefined) return;
    const { controller } = message;
    const end = () => controller.abort();
    stream.once("close", end);
    try {
      await serveRequest(message, session, response, format, controller.signal);
    } finally {
      message.hasEnded = true;
      stream.off("close", end);
    }
    await response.end();
    if (controller.signal.aborted) confirm();
  }
}
