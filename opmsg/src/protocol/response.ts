import { serialize } from "bson";
import { opCodes, writeMessage } from "./message.ts";
import type { Request } from "./request.ts";

/** An error of MongoDB: drivers decide by its code. */
export interface CommandError {
  readonly code: number;
  readonly codeName: string;
  readonly message: string;
}

/** The response that refuses a request, in the format of the request's opcode. */
export function writeRefusal({ header }: Pick<Request, "header">, { code, codeName, message }: CommandError): Buffer {
  const document = serialize({ ok: 0, errmsg: message, code, codeName });
  const prefix = header.opCode === opCodes.query ? replyPrefix() : Buffer.alloc(5);
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

/** OP_REPLY: flags, cursor id, position of the first document, number of documents. */
function replyPrefix(): Buffer {
  const prefix = Buffer.alloc(20);
  prefix.writeInt32LE(1, 16);
  return prefix;
}
