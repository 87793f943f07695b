import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type PayloadChunk, ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { CopyPayloadResultSchema, type PayloadRef } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

export const copyPayload: TaskHandler<"copyPayload"> = {
  async run({ payload }, { channel, signal, progress }) {
    if (payload === undefined) throw new TaskFailed("invalid_task", "the task names no payload");
    const connection = await channel();
    const source = connection.readPayload(create(ReadPayloadRequestSchema, { id: payload.id }), signal);
    const copy = await connection.writePayload(verified(source, payload, progress), signal);
    if (copy.sha256 !== payload.sha256) throw corrupt();
    return create(CopyPayloadResultSchema, { payload: copy });
  },
};

/** The chunks as they come; throws at the end of a payload that is not what the reference says. */
async function* verified(
  source: AsyncIterable<PayloadChunk>,
  { sizeBytes, sha256 }: PayloadRef,
  progress: (step: string, progressPct: number) => void,
): AsyncIterable<PayloadChunk> {
  const hash = createHash("sha256");
  const total = Number(sizeBytes);
  let bytes = 0;
  let shownPct = 0;
  for await (const chunk of source) {
    hash.update(chunk.data);
    bytes += chunk.data.byteLength;
    if (bytes > total) throw corrupt();
    yield chunk;
    const pct = Math.floor((bytes / total) * 100);
    if (pct < shownPct + 10) continue;
    shownPct = pct;
    progress("copying", pct);
  }
  if (bytes !== total || hash.digest("hex") !== sha256) throw corrupt();
}

function corrupt(): TaskFailed {
  return new TaskFailed("payload_corrupt", "the payload is not what its reference says", { retryable: true });
}
