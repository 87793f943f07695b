import { ProtocolError } from "./protocol-error.ts";

/** Types of packets (MS-TDS 2.2.3.1.1). */
export const packetTypes = {
  sqlBatch: 0x01,
  rpc: 0x03,
  tabularResult: 0x04,
  attention: 0x06,
  bulkLoad: 0x07,
  transactionManager: 0x0e,
  login7: 0x10,
  sspi: 0x11,
  preLogin: 0x12,
} as const;

export const packetHeaderBytes = 8;
export const packetSizeMin = 512;
export const packetSizeMax = 32_767;
const packetSizeDefault = 4_096;

/** Bits of the status of a packet (MS-TDS 2.2.3.1.2). */
const endOfMessage = 0x01;
const ignoreEvent = 0x02;
const resetConnection = 0x08;
const resetConnectionSkipTransaction = 0x10;

export interface Message {
  readonly type: number;
  readonly payload: Buffer;
  /** The client canceled the message while it sent it. */
  readonly isIgnored: boolean;
  readonly resetsConnection: boolean;
  readonly keepsTransaction: boolean;
  /** True for a packet of a streamed message that continues. */
  readonly continues: boolean;
}

const emptyMessage: Omit<Message, "type"> = {
  payload: Buffer.alloc(0),
  isIgnored: false,
  resetsConnection: false,
  keepsTransaction: false,
  continues: false,
};

/** Limit of the payload of a message by its type; a type without a limit is refused. */
export type MessageLimit = (type: number) => number | undefined;

/** Messages whose packets are passed on as they arrive: their length has no limit. */
export const isStreamed = (type: number): boolean => type === packetTypes.bulkLoad;

/** Joins packets to messages. Buffers at most the limit of the message that is being received. */
export class MessageReader {
  #pending: Buffer = Buffer.alloc(0);
  #parts: Buffer[] = [];
  #partBytes = 0;
  #type: number | undefined;
  #reset = 0;
  readonly #limit: MessageLimit;

  constructor(limit: MessageLimit) {
    this.#limit = limit;
  }

  /** Removes and returns the bytes after the last complete packet; they are the first bytes of TLS. */
  takePending(): Buffer {
    const pending = this.#pending;
    this.#pending = Buffer.alloc(0);
    return pending;
  }

  *read(chunk: Buffer): Generator<Message> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= packetHeaderBytes) {
      const type = this.#pending.readUInt8(0);
      const status = this.#pending.readUInt8(1);
      const length = this.#pending.readUInt16BE(2);
      if (length < packetHeaderBytes) throw new ProtocolError(`a packet has a length of ${length} bytes`);
      const limit = this.#limit(type);
      if (limit === undefined) throw new ProtocolError(`packets of type ${type} are not accepted now`);
      if (this.#type !== undefined && type !== this.#type && type !== packetTypes.attention)
        throw new ProtocolError(`a packet of type ${type} interrupts a message of type ${this.#type}`);
      if (this.#pending.length < length) return;
      const body = this.#pending.subarray(packetHeaderBytes, length);
      this.#pending = this.#pending.subarray(length);
      if (type === packetTypes.attention) {
        this.#clear();
        yield { ...emptyMessage, type };
        continue;
      }
      if (this.#type === undefined) this.#reset = status;
      this.#type = type;
      this.#partBytes += body.length;
      if (this.#partBytes > limit) throw new ProtocolError(`a message of type ${type} is longer than ${limit} bytes`);
      this.#parts.push(body);
      const continues = (status & endOfMessage) === 0;
      if (continues && !isStreamed(type)) continue;
      const reset = this.#reset & (resetConnection | resetConnectionSkipTransaction);
      const payload = this.#parts.length === 1 ? (this.#parts[0] ?? body) : Buffer.concat(this.#parts);
      this.#clear();
      if (continues) this.#type = type;
      yield {
        type,
        payload,
        continues,
        isIgnored: (status & ignoreEvent) !== 0,
        resetsConnection: reset !== 0,
        keepsTransaction: (reset & resetConnectionSkipTransaction) !== 0,
      };
    }
  }

  #clear(): void {
    this.#type = undefined;
    this.#parts = [];
    this.#partBytes = 0;
  }
}

/** Splits the payload of one message into packets. `isLast` ends the message; a message may be written in parts. */
export class PacketWriter {
  #id = 1;
  #payload: Buffer = Buffer.alloc(0);
  packetSize = packetSizeDefault;

  /** Returns the complete packets of the payload, and with `isLast` also the remaining, shorter one. */
  write(type: number, payload: Buffer, isLast: boolean): Buffer {
    let remainder = this.#payload.length === 0 ? payload : Buffer.concat([this.#payload, payload]);
    const capacity = this.packetSize - packetHeaderBytes;
    const packets: Buffer[] = [];
    while (remainder.length > capacity || (isLast && (remainder.length > 0 || packets.length === 0))) {
      const body = remainder.subarray(0, capacity);
      remainder = remainder.subarray(body.length);
      packets.push(this.#header(type, body.length, isLast && remainder.length === 0), body);
      if (isLast && remainder.length === 0) break;
    }
    this.#payload = remainder;
    if (isLast) this.#id = 1;
    return Buffer.concat(packets);
  }

  #header(type: number, bodyBytes: number, isLast: boolean): Buffer {
    const header = Buffer.alloc(packetHeaderBytes);
    header.writeUInt8(type, 0);
    header.writeUInt8(isLast ? endOfMessage : 0, 1);
    header.writeUInt16BE(bodyBytes + packetHeaderBytes, 2);
    header.writeUInt8(this.#id, 6);
    this.#id = (this.#id + 1) % 256;
    return header;
  }
}
