import { create } from "@bufbuild/protobuf";
import { concatInTurns } from "@holdfast/common/in-turns.ts";
import { openPayload, sealPayload } from "@holdfast/common/sealed-payload.ts";
import { PayloadChunkSchema, ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type PackedContent,
  PackedContentSchema,
  type SealedPayload,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskContext } from "./task-handler.ts";

/** What is larger goes by the object store, sealed under a key that goes with the task. */
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
  if (payload === undefined) throw new TaskFailed("invalid_task", "the task names no payload");
  const chunks: Uint8Array[] = [];
  const request = create(ReadPayloadRequestSchema, { id: payload.id });
  for await (const { data } of (await channel()).readPayload(request, signal)) chunks.push(data);
  return concatInTurns(chunks);
}

async function* inChunks(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += inlineBytes)
    yield create(PayloadChunkSchema, { data: bytes.subarray(at, at + inlineBytes) });
}
