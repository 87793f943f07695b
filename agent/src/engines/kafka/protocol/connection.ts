import { connect, type TLSSocket } from "node:tls";
import { type Api, saslHandshakeKey } from "./apis.ts";
import { int16, int32, Reader, Writer } from "./codec.ts";
import { createResponses } from "./responses.ts";

/** Endpoint of a broker, and the certificates of both sides: PEM. */
export interface BrokerEndpoint {
  readonly address: string;
  readonly port: number;
  /** Own key and certificate. */
  readonly key: string;
  readonly certificate: string;
  /** Authority of the broker's certificate, or that certificate itself. */
  readonly authority: string;
}

/** A connection to a broker. Calls are sent without waiting, and answered in their order. */
export interface Connection {
  call<Request, Response>(api: Api<Request, Response>, request: Request): Promise<Response>;
  /** Announces the mechanism of the authentication that follows. */
  handshake(mechanism: string): Promise<void>;
}

const clientId = "holdfast";
/** The largest batch that a client can send, with its response: the platform's calls never need more. */
const maxResponseBytes = 65 << 20;

/** An open connection, until it is closed. */
export interface OpenConnection extends Connection {
  close(): void;
}

/** Connects; calls wait for the connection. An abort destroys it. */
export function openConnection(
  { address, port, key, certificate, authority }: BrokerEndpoint,
  signal: AbortSignal,
): OpenConnection {
  signal.throwIfAborted();
  const socket = connect({
    host: address,
    port,
    key,
    cert: certificate,
    ca: authority,
    // Members are addressed by their addresses, which certificates do not name.
    checkServerIdentity: () => undefined,
  });
  const abort = () => socket.destroy(new Error("the call was canceled", { cause: signal.reason }));
  signal.addEventListener("abort", abort, { once: true });
  return {
    ...createConnection(socket),
    close() {
      signal.removeEventListener("abort", abort);
      socket.destroy();
    },
  };
}

/** Connects, does the work and disconnects. An abort destroys the connection. */
export async function withConnection<T>(
  endpoint: BrokerEndpoint,
  signal: AbortSignal,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = openConnection(endpoint, signal);
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
}

const closedText = "the broker closed the connection";

/** True if the connection ended before the response. The broker may have done what the call requested. */
export function isDisconnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message === closedText || ("code" in error && ["ECONNRESET", "EPIPE"].includes(String(error.code)));
}

interface Pending {
  resolve(response: Buffer): void;
  reject(error: Error): void;
}

/** A connection over an open socket, which the caller ends. */
export function createConnection(socket: TLSSocket): Connection {
  const pending: Pending[] = [];
  let correlation = 0;
  let broken: Error | undefined;

  const fail = (error: Error) => {
    broken ??= error;
    for (const { reject } of pending.splice(0)) reject(broken);
  };
  socket.on("error", fail);
  socket.on("close", () => fail(new Error(closedText)));
  // Responses come in the order of the requests, so the correlation id is not needed.
  const receive = createResponses(maxResponseBytes, (response) => pending.shift()?.resolve(response.subarray(4)));
  socket.on("data", (part: Buffer) => {
    try {
      receive(part);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });

  function send(key: number, version: number, isFlexible: boolean, body: Buffer): Promise<Buffer> {
    if (broken !== undefined) return Promise.reject(broken);
    const header = new Writer();
    int16.write(header, key);
    int16.write(header, version);
    int32.write(header, (correlation += 1));
    writeShortString(header, clientId);
    if (isFlexible) header.varint(0);
    const message = Buffer.concat([header.bytes(), body]);
    const length = Buffer.alloc(4);
    length.writeInt32BE(message.length);
    return new Promise((resolve, reject) => {
      pending.push({ resolve, reject });
      socket.write(Buffer.concat([length, message]));
    });
  }

  return {
    async call({ key, version, request: requestCodec, response: responseCodec }, request) {
      const body = new Writer();
      requestCodec.write(body, request);
      const reader = new Reader(await send(key, version, true, body.bytes()));
      reader.skipTags();
      return responseCodec.read(reader);
    },
    async handshake(mechanism) {
      const body = new Writer();
      writeShortString(body, mechanism);
      const response = await send(saslHandshakeKey, 1, false, body.bytes());
      if (response.readInt16BE() !== 0) throw new Error(`the broker has no mechanism ${mechanism}`);
    },
  };
}

/** A string with a length of 2 bytes, as headers of requests have it. */
function writeShortString(to: Writer, text: string): void {
  const bytes = Buffer.from(text);
  int16.write(to, bytes.length);
  to.add(bytes);
}
