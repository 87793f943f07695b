import { deserialize, serialize } from "bson";
import { opCodes, writeMessage } from "./message.ts";
import type { Request } from "./request.ts";

/** An error of MongoDB: drivers decide by its code. */
export interface CommandError {
  readonly code: number;
  readonly codeName: string;
  readonly message: string;
}

/** The response that refuses a request, in the format of the request's opcode. */
export function writeRefusal(request: Pick<Request, "header">, { code, codeName, message }: CommandError): Buffer {
  return writeReply(request, serialize({ ok: 0, errmsg: message, code, codeName }));
}

/** A response with this document, in the format of the request's opcode. */
export function writeReply({ header }: Pick<Request, "header">, document: Uint8Array): Buffer {
  const prefix = header.opCode === opCodes.query ? replyPrefix() : Buffer.alloc(prefixBytes.msg);
  const opCode = header.opCode === opCodes.query ? opCodes.reply : opCodes.msg;
  return writeMessage({ requestId: 0, responseTo: header.requestId, opCode }, Buffer.concat([prefix, document]));
}

/** Max number of writes in one command of the engine, which reports another number in greetings. */
const writesMax = 25_000;
const writesField = Buffer.from("\u0010maxWriteBatchSize\0", "latin1");
const greetings = ["hello", "isMaster", "ismaster"];

/** True for a greeting, whose response has the number of writes by which drivers split their batches. */
export function isGreeting({ command }: Pick<Request, "command">): boolean {
  return greetings.includes(command);
}

/** Limits that number, in place, to what the engine takes. */
export function limitWrites(body: Buffer): void {
  const at = body.indexOf(writesField);
  const value = at + writesField.length;
  if (at >= 0 && value + 4 <= body.length) body.writeInt32LE(Math.min(body.readInt32LE(value), writesMax), value);
}

/** Bytes before the document of a response: of OP_REPLY, and of OP_MSG, the flags and the kind of its section. */
const prefixBytes = { reply: 20, msg: 5 } as const;

/** The greeting of a replica, in place of that of a primary. Drivers read from it, since it names no set. */
export function asReplica(body: Buffer, opCode: number): Buffer {
  const size = opCode === opCodes.reply ? prefixBytes.reply : prefixBytes.msg;
  const greeting = deserialize(body.subarray(size), { promoteValues: false });
  if (greeting["ok"] === undefined) return body;
  for (const name of ["ismaster", "isWritablePrimary"])
    if (Object.hasOwn(greeting, name)) Object.assign(greeting, { [name]: false });
  Object.assign(greeting, { secondary: true, readOnly: true });
  return Buffer.concat([body.subarray(0, size), serialize(greeting)]);
}

/** OP_REPLY: flags, cursor id, position of the first document, number of documents. */
function replyPrefix(): Buffer {
  const prefix = Buffer.alloc(prefixBytes.reply);
  prefix.writeInt32LE(1, 16);
  return prefix;
}
