import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";

/** Types of frames, RFC 9113, section 6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 1;
export const endHeaders = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** One setting of SETTINGS. */
export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** A field of a header block in HPACK without the dynamic table or Huffman coding. */
export function field(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const rest = bytes.length - 127;
  const length =
    rest < 128
      ? [127, rest]
      : [127, (rest & 127) | 128, ...(rest < 16_384 ? [rest >> 7] : [((rest >> 7) & 127) | 128, rest >> 14])];
  return Buffer.concat([Buffer.from(length), bytes]);
}

export const get = (path: string): Buffer =>
  Buffer.concat([
    field(":method", "GET"),
    field(":scheme", "https"),
    field(":authority", "localhost"),
    field(":path", path),
  ]);

/** A client that sends any bytes over h2, and reads or does not. */
export interface RawClient {
  readonly socket: TLSSocket;
  /** False once the connection is closed. */
  send(bytes: Buffer): boolean;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
  /** Received frames, by type. */
  readonly received: ReadonlyMap<number, number>;
}

export interface RawTarget {
  readonly port: number;
  readonly ca: string;
  readonly localAddress: string;
}

export async function openTls({ port, ca, localAddress }: RawTarget, protocol: "h2" | "http/1.1"): Promise<TLSSocket> {
  const options = { host: "127.0.0.1", port, ca, servername: "localhost", localAddress, ALPNProtocols: [protocol] };
  const socket = connect(options as ConnectionOptions);
  socket.on("error", () => undefined);
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("close", () => reject(new Error("the handshake came to nothing")));
  });
  return socket;
}

export async function openRaw(target: RawTarget, settings: Buffer = Buffer.alloc(0)): Promise<RawClient> {
  const socket = await openTls(target, "h2");
  const received = new Map<number, number>();
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let size = sizeOf(rest); size <= rest.length; size = sizeOf(rest)) {
      const type = rest.readUInt8(3);
      received.set(type, (received.get(type) ?? 0) + 1);
      rest = rest.subarray(size);
    }
  });
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  socket.write(
    Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameTypes.settings, 0, 0, settings)]),
  );
  return {
    socket,
    closed,
    received,
    send(bytes) {
      if (socket.destroyed || !socket.writable) return false;
      socket.write(bytes);
      return true;
    },
  };
}

function sizeOf(bytes: Buffer): number {
  return bytes.length < 9 ? Number.POSITIVE_INFINITY : 9 + bytes.readUIntBE(0, 3);
}
