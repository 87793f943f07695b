import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { packetHeaderBytes, packetTypes, PacketWriter } from "./packet.ts";
import { ProtocolError } from "./protocol-error.ts";

/** A complete handshake is shorter, certificates of both sides included. */
const handshakeBytesMax = 128 << 10;

/**
 * The stream below TLS. In 7.x the handshake is wrapped in pre-login packets, and what follows is not (MS-TDS 3.2.5.1).
 * The first record of the client outside of a packet ends the wrapping of both directions, since the server sends
 * nothing between the end of the handshake and that record. In 8.0 nothing is wrapped.
 */
export class TlsTransport extends Duplex {
  readonly #socket: Socket;
  readonly #packets = new PacketWriter();
  #isWrapped: boolean;
  #pending: Buffer = Buffer.alloc(0);
  #handshakeBytes = 0;

  /** `first` are the bytes that the socket already delivered. */
  constructor(socket: Socket, options: { readonly isWrapped: boolean; readonly first: Buffer }) {
    super();
    this.#socket = socket;
    this.#isWrapped = options.isWrapped;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => this.push(null));
    socket.on("close", () => this.destroy());
    socket.on("error", (error) => this.destroy(error));
    if (options.first.length > 0) this.#receive(options.first);
    socket.resume();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    const bytes = this.#isWrapped ? this.#packets.write(packetTypes.preLogin, chunk, true) : chunk;
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (!this.#isWrapped) {
      if (!this.push(chunk)) this.#socket.pause();
      return;
    }
    this.#handshakeBytes += chunk.length;
    if (this.#handshakeBytes > handshakeBytesMax) {
      this.destroy(new ProtocolError(`a TLS handshake is longer than ${handshakeBytesMax} bytes`));
      return;
    }
    this.#pending = Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length > 0) {
      if (this.#pending[0] !== packetTypes.preLogin) {
        this.#isWrapped = false;
        const first = this.#pending;
        this.#pending = Buffer.alloc(0);
        this.#receive(first);
        return;
      }
      if (this.#pending.length < packetHeaderBytes) return;
      const length = this.#pending.readUInt16BE(2);
      if (length < packetHeaderBytes) {
        this.destroy(new ProtocolError(`a packet has a length of ${length} bytes`));
        return;
      }
      if (this.#pending.length < length) return;
      this.push(this.#pending.subarray(packetHeaderBytes, length));
      this.#pending = this.#pending.subarray(length);
    }
  }
}
