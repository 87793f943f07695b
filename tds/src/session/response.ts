import { once } from "node:events";
import type { Duplex } from "node:stream";
import { ByteWriter } from "../protocol/byte-writer.ts";
import { packetTypes, PacketWriter } from "../protocol/packet.ts";

/** Tokens are sent in pieces of this size, so that memory does not grow with the result. */
const pieceBytes = 32 << 10;

/** Writes the tokens of responses as packets, at the speed at which the client reads them. */
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

  /**
   * Sends the tokens if they fill a piece; false if the client reads too slowly and the caller must await `drained`.
   */
  flushPiece(): boolean {
    if (this.tokens.length < pieceBytes) return true;
    this.#stream.write(this.#packets.write(packetTypes.tabularResult, this.tokens.take(), false));
    return !this.#stream.writableNeedDrain;
  }

  /** Resolves once the client has read enough, or the connection ended. */
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

  /** Sends the remaining tokens and ends the message. */
  async end(type: number = packetTypes.tabularResult): Promise<void> {
    this.#stream.write(this.#packets.write(type, this.tokens.take(), true));
    await this.drained();
  }
}
