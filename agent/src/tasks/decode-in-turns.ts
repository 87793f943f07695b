import { setImmediate as turn } from "node:timers/promises";
import { create, type DescMessage, mergeFromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { turnBytes } from "@holdfast/common/in-turns.ts";

/**
 * As `fromBinary`. Fields of the outermost message are read one by one, and others have their turn between them: a message that was
 * written as several behind one another holds the event loop for none of them long.
 */
export async function decodeInTurns<D extends DescMessage>(schema: D, bytes: Uint8Array): Promise<MessageShape<D>> {
  const message = create(schema);
  const reader = new BinaryReader(bytes);
  let from = 0;
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    reader.skip(wireType, number);
    if (reader.pos - from < turnBytes && reader.pos < reader.len) continue;
    if (from > 0) await turn();
    mergeFromBinary(schema, message, bytes.subarray(from, reader.pos));
    from = reader.pos;
  }
  return message;
}
