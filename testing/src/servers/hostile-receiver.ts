import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";

/**
 * Responses of a server that tries to make the platform wait, run out of memory, follow it elsewhere or believe false
 * data.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const hostileResponses = {
  "an endless body":             (socket) => pour(socket, head("200 OK", "content-type: application/json"), "x".repeat(64 << 10)),
  "endless headers":             (socket) => pour(socket, "HTTP/1.1 200 OK\r\n", "x-more: y\r\n".repeat(4_000)),
  "one header without an end":   (socket) => pour(socket, "HTTP/1.1 200 OK\r\nx-more: ", "y".repeat(64 << 10)),
  "a head byte by byte":  (socket) => drip(socket, "", head("200 OK", "content-length: 0")),
  "a body byte by byte":  (socket) => drip(socket, head("200 OK", "content-length: 100000"), "{".repeat(100_000)),
  "no answer":                   () => undefined,
  "a bomb of gzip":              (socket) => socket.end(Buffer.concat([Buffer.from(head("200 OK", "content-encoding: gzip", `content-length: ${bomb().length}`)), bomb()])),
  "deeply nested JSON":          (socket) => respond(socket, "200 OK", "[".repeat(500_000)),
  "counts beyond reason":        (socket) => respond(socket, "200 OK", '{"errors":true,"items":[{"create":{"status":1e308}}],"partialSuccess":{"rejectedDataPoints":"1e308","rejectedLogRecords":-5},"rejectedLogEventsInfo":{"tooOldLogEventEndIndex":1e308,"tooNewLogEventStartIndex":-1e308}}'),
  "a redirect inside":           (socket) => socket.end(head("307 Temporary Redirect", "location: http://169.254.169.254/latest/meta-data/", "content-length: 0")),
  "informational heads for ever": (socket) => pour(socket, "", "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000)),
  "no HTTP at all":              (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"),
  "a switch of protocols":       (socket) => socket.write(head("101 Switching Protocols", "upgrade: x", "connection: upgrade")),
  "two lengths":                 (socket) => socket.end(head("200 OK", "content-length: 1", "content-length: 2") + "ab"),
  "chunks that lie":             (socket) => socket.end(`${head("200 OK", "transfer-encoding: chunked")}fffffffffffffffffff\r\nab`),
  "a wait of a thousand years":  (socket) => socket.end(head("429 Too Many Requests", "retry-after: 99999999999999999999", "content-length: 0")),
} satisfies Record<string, (socket: Socket) => unknown>;

export interface HostileReceiver {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Bytes that all connections accepted. */
  sentBytes(): number;
  /** Number of open connections. */
  open(): number;
  close(): Promise<void>;
}

/** A TCP server that sends a hostile response to the first bytes of a connection. */
export async function startHostileReceiver(name: keyof typeof hostileResponses): Promise<HostileReceiver> {
  const sockets: Socket[] = [];
  const sendResponse: (socket: Socket) => unknown = hostileResponses[name];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined).once("data", () => void sendResponse(socket));
    socket.on("data", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sentBytes: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
    open: () => sockets.filter(({ destroyed }) => !destroyed).length,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function head(status: string, ...headers: readonly string[]): string {
  return `HTTP/1.1 ${[status, ...headers].join("\r\n")}\r\n\r\n`;
}

function respond(socket: Socket, status: string, body: string): void {
  socket.end(head(status, "content-type: application/json", `content-length: ${Buffer.byteLength(body)}`) + body);
}

/** Writes as fast as the other side reads, until it closes. */
function pour(socket: Socket, first: string, more: string): void {
  const fill = () => {
    while (!socket.destroyed && socket.write(more));
  };
  socket.on("drain", fill).write(first);
  fill();
}

async function drip(socket: Socket, first: string, rest: string): Promise<void> {
  socket.write(first);
  for (const character of rest) {
    if (socket.destroyed) return;
    socket.write(character);
    // Time: the rate of a slow sender.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

let created: Buffer | undefined;
/** 256 MiB of zeros, compressed to a quarter of one. */
function bomb(): Buffer {
  return (created ??= gzipSync(Buffer.alloc(256 << 20), { level: 9 }));
}
