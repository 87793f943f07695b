import { once } from "node:events";
import type { Duplex } from "node:stream";
import { ByteWriter } from "../protocol/byte-writer.ts";
import { packetTypes, PacketWriter } from "../protocol/packet.ts";

/** Tokens are sent in pieces of this size, so that a result of any length needs little memory. */
const pieceBytes = 32 << 10;

/** The tokens of responses, cut into packets and sent at the speed of the client. */
export class Response {
  readonly tokens = new ByteWriter(4_096);
  readonly #packets = new PacketWriter();
  readonly #stream: Duplex;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  set packetSize(bytes: number) {
    this.#packets.packetSize = bytes;
  }

  /** Sends a full piece; false if the client has not read what was sent before, and the caller has to wait. */
  flushPiece(): boolean {
    if (this.tokens.length < pieceBytes) return true;
    this.#stream.write(this.#packets.write(packetTypes.tabularResult, this.tokens.take(), false));
    return !this.#stream.writableNeedDrain;
  }

  /** Resolves when the client read enough, or with the end of the connection. */
  async drained(): Promise<void> {
    if (!this.#stream.writableNeedDrain || this.#stream.destroyed) return;
    const ended = new AbortController();
    const end = () => ended.abort();
    this.#stream.once("close", end);
    try {
      await once(this.#stream, "drain", { signal: ended.signal });
    } catch (error) {
      if (!this.#stream.destroyed) throw error;
    } finally {
      this.#stream.off("close", end);
    }
  }

  /** Ends the message. */
  async end(type: number = packetTypes.tabularResult): Promise<void> {
    this.#stream.write(this.#packets.write(type, this.tokens.take(), true));
    await this.drained();
  }
}
