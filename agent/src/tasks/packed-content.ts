import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { create, type DescMessage, mergeFromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { concatIncrementally, incrementBytes } from "@holdfast/common/incremental.ts";
import { openPayload, sealPayload } from "@holdfast/common/sealed-payload.ts";
import { PayloadChunkSchema, ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type PackedContent,
  PackedContentSchema,
  type SealedPayload,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskContext } from "./task-handler.ts";

/** Content above this size travels through the object store, encrypted under a key that is part of the task. */
const inlineBytes = 64 << 10;

type Context = Pick<TaskContext, "channel" | "signal">;

export async function packContent(bytes: Uint8Array, { channel, signal }: Context): Promise<PackedContent> {
  if (bytes.byteLength <= inlineBytes) return create(PackedContentSchema, { inline: bytes });
  const { sealed, key } = await sealPayload(bytes);
  const payload = await (await channel()).writePayload(inChunks(sealed), signal);
  return create(PackedContentSchema, { sealed: { payload, key } });
}

export async function unpackContent({ inline, sealed }: PackedContent, context: Context): Promise<Uint8Array> {
  return sealed === undefined ? inline : openPayload(await readAll(sealed, context), sealed.key);
}

async function readAll({ payload }: SealedPayload, { channel, signal }: Context): Promise<Uint8Array> {
  if (payload === undefined) throw new TaskFailed("invalid_task", "The task names no payload.");
  const chunks: Uint8Array[] = [];
  const request = create(ReadPayloadRequestSchema, { id: payload.id });
  for await (const { data } of (await channel()).readPayload(request, signal)) chunks.push(data);
  return concatIncrementally(chunks);
}

async function* inChunks(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += inlineBytes)
    yield create(PayloadChunkSchema, { data: bytes.subarray(at, at + inlineBytes) });
}

/**
 * Decodes like `fromBinary`, but yields to the event loop between the fields of the outermost message. So a large
 * message in several parts (which protobuf merges) blocks the event loop only for the time of one field.
 */
export async function decodeIncrementally<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
): Promise<MessageShape<D>> {
  const message = create(schema);
  const reader = new BinaryReader(bytes);
  let from = 0;
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    reader.skip(wireType, number);
    if (reader.pos - from < incrementBytes && reader.pos < reader.len) continue;
    if (from > 0) await yieldToEventLoop();
    mergeFromBinary(schema, message, bytes.subarray(from, reader.pos));
    from = reader.pos;
  }
  return message;
}
