import { opCodes, writeMessage } from "@holdfast/opmsg/protocol/message.ts";
import { type Document, serialize } from "bson";

export interface TestMessage {
  readonly requestId?: number;
  readonly flags?: number;
  readonly sequences?: readonly { readonly identifier: string; readonly documents: readonly Document[] }[];
  /** True for the sections of kind 1 before the command. */
  readonly commandLast?: boolean;
}

/** An OP_MSG as drivers send it. */
export function opMsg(command: Document, options: TestMessage = {}): Buffer {
  const { requestId = 1, flags = 0, sequences = [], commandLast = false } = options;
  const bits = Buffer.alloc(4);
  bits.writeUInt32LE(flags);
  const body = Buffer.concat([Buffer.from([0]), serialize(command)]);
  const others = sequences.map(({ identifier, documents }) => {
    const content = Buffer.concat([Buffer.from(`${identifier}\0`), ...documents.map((each) => serialize(each))]);
    const size = Buffer.alloc(5);
    size[0] = 1;
    size.writeInt32LE(content.length + 4, 1);
    return Buffer.concat([size, content]);
  });
  const sections = commandLast ? [...others, body] : [body, ...others];
  return writeMessage({ requestId, responseTo: 0, opCode: opCodes.msg }, Buffer.concat([bits, ...sections]));
}

/** A command as an OP_QUERY, by which drivers send their first greeting. */
export function opQuery(command: Document, requestId = 1): Buffer {
  const body = Buffer.concat([Buffer.alloc(4), Buffer.from("admin.$cmd\0"), Buffer.from([0, 0, 0, 0, 1, 0, 0, 0])]);
  return writeMessage({ requestId, responseTo: 0, opCode: opCodes.query }, Buffer.concat([body, serialize(command)]));
}

/** Client's first message of a sign-in by SCRAM-SHA-256. */
export function saslStart(user: string): Document {
  const payload = Buffer.from(`n,,n=${user},r=0123456789abcdefghijklmn`);
  return { saslStart: 1, mechanism: "SCRAM-SHA-256", payload, options: { skipEmptyExchange: true }, $db: "admin" };
}
