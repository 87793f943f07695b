import { type Field, fieldsOf } from "./fields.ts";
import { type Header, headerBytes, opCodes, ProtocolError, readHeader } from "./message.ts";

/** A command of a client, and the message that has it. */
export interface Request {
  readonly header: Header;
  /** The message without its header. */
  readonly body: Buffer;
  /** Name of the command: the first field of its document. */
  readonly command: string;
  /** Fields of the command's document. */
  readonly fields: readonly Field[];
  /** Document sequences beside it. */
  readonly sequences: readonly DocumentSequence[];
  /** True if the client expects no response. */
  readonly isUnacknowledged: boolean;
}

/** Documents of a command that are one after the other beside its own document. */
export interface DocumentSequence {
  readonly identifier: string;
  readonly documents: Buffer;
}

const flags = { checksumPresent: 1 << 0, moreToCome: 1 << 1, exhaustAllowed: 1 << 16 } as const;
const knownFlags = flags.moreToCome | flags.exhaustAllowed;

/**
 * Reads a complete message. Throws ProtocolError for one that is malformed, or whose meaning could depend on its
 * reader: a checksum, a second command, an unknown opcode.
 */
export function readRequest(message: Buffer): Request {
  const header = readHeader(message);
  if (header.opCode === opCodes.msg) return readMsg(header, message.subarray(headerBytes));
  if (header.opCode === opCodes.query) return readQuery(header, message.subarray(headerBytes));
  throw new ProtocolError(`the opcode ${header.opCode} is not supported`);
}

/** OP_MSG: flags, then sections, of which one is the command (kind 0) and the others are sequences (kind 1). */
function readMsg(header: Header, body: Buffer): Request {
  if (body.length < 5) throw new ProtocolError("a message without sections");
  const bits = body.readUInt32LE(0);
  if ((bits & ~knownFlags) !== 0) throw new ProtocolError("a flag that is not supported");
  let command: Buffer | undefined;
  const sequences: DocumentSequence[] = [];
  for (let offset = 4; offset < body.length; ) {
    const kind = body[offset];
    const size = sizeAt(body, offset + 1);
    const section = body.subarray(offset + 1, offset + 1 + size);
    if (kind === 0) {
      if (command !== undefined) throw new ProtocolError("a message with two commands");
      command = section;
    } else if (kind === 1) sequences.push(sequenceIn(section));
    else throw new ProtocolError(`a section of the kind ${kind}`);
    offset += 1 + size;
  }
  if (command === undefined) throw new ProtocolError("a message without a command");
  return { ...commandOf(header, command), body, sequences, isUnacknowledged: (bits & flags.moreToCome) !== 0 };
}

/** OP_QUERY: flags, a C string with the collection, two numbers, and the command. */
function readQuery(header: Header, body: Buffer): Request {
  const nameEnd = body.indexOf(0, 4);
  const start = nameEnd + 9;
  if (body.length < 4 || nameEnd < 0) throw new ProtocolError("a query without a collection");
  if (!body.toString("utf8", 4, nameEnd).endsWith(".$cmd")) throw new ProtocolError("a query that is not a command");
  const end = start + sizeAt(body, start);
  if (end !== body.length) throw new ProtocolError("a query with more than a command");
  return { ...commandOf(header, body.subarray(start, end)), body, sequences: [], isUnacknowledged: false };
}

function commandOf(header: Header, document: Buffer): Pick<Request, "header" | "command" | "fields"> {
  const fields = fieldsOf(document);
  const command = fields[0]?.name;
  if (command === undefined) throw new ProtocolError("a command without a name");
  return { header, command, fields };
}

/** Size at the beginning of a document or sequence, which includes itself. */
function sizeAt(body: Buffer, offset: number): number {
  if (offset + 4 > body.length) throw new ProtocolError("a section that is cut off");
  const size = body.readInt32LE(offset);
  if (size < 5 || offset + size > body.length) throw new ProtocolError("a section whose size is wrong");
  return size;
}

function sequenceIn(section: Buffer): DocumentSequence {
  const end = section.indexOf(0, 4);
  if (end < 0) throw new ProtocolError("a sequence without an identifier");
  return { identifier: section.toString("utf8", 4, end), documents: section.subarray(end + 1) };
}
