import { sequenceOf } from "../commands.ts";
import { bsonTypes, fieldsOf } from "./fields.ts";
import { ProtocolError } from "./message.ts";
import type { Request } from "./request.ts";

/** Documents of the writes of an insert, update or delete, in its document or beside it. */
export function* writesOf({ command, fields, sequences }: Request): Generator<Buffer> {
  const name = sequenceOf.get(command);
  for (const { type, value } of fields.filter((field) => field.name === name))
    if (type === bsonTypes.array) yield* fieldsOf(value).map((item) => item.value);
  for (const { identifier, documents } of sequences) if (identifier === name) yield* documentsIn(documents);
}

/** The documents of a sequence. */
function* documentsIn(documents: Buffer): Generator<Buffer> {
  for (let offset = 0; offset < documents.length; ) {
    const size = offset + 4 > documents.length ? 0 : documents.readInt32LE(offset);
    if (size < 5 || offset + size > documents.length) throw new ProtocolError("a document whose size is wrong");
    yield documents.subarray(offset, offset + size);
    offset += size;
  }
}
