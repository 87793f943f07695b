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

/** OP_REPLY: flags, cursor id, position of the first document, number of documents. */
function replyPrefix(): Buffer {
  const prefix = Buffer.alloc(20);
  prefix.writeInt32LE(1, 16);
  return prefix;
}
