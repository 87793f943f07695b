import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type PayloadChunk, ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  CopyPayloadResultSchema,
  type PayloadRef,
  UpgradeAgentResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

/** The outgoing agent begins the task; the new agent finds the intent in the journal and reports the result. */
export const upgradeAgent: TaskHandler<"upgradeAgent"> = {
  async inspect({ digest }, { upgrade }) {
    if (upgrade.digest !== digest) return undefined;
    return create(UpgradeAgentResultSchema, { digest, gapMs: upgrade.gapMs });
  },
  async run(input, { taskId: id, upgrade, channel, signal, progress }) {
    if (upgrade.digest === input.digest) return create(UpgradeAgentResultSchema, { digest: input.digest });
    return upgrade.perform(input, { id, channel, signal, progress });
  },
};

/** Reads a payload from the controller and writes it back: a check of the payload path that needs no engine. */
export const copyPayload: TaskHandler<"copyPayload"> = {
  async run({ payload }, { channel, signal, progress }) {
    if (payload === undefined) throw new TaskFailed("invalid_task", "The task names no payload.");
    const connection = await channel();
    const source = connection.readPayload(create(ReadPayloadRequestSchema, { id: payload.id }), signal);
    const copy = await connection.writePayload(verified(source, payload, progress), signal);
    if (copy.sha256 !== payload.sha256) throw corrupt();
    return create(CopyPayloadResultSchema, { payload: copy });
  },
};

/** Passes the chunks on, and throws at the end if size or checksum differ from the reference. */
async function* verified(
  source: AsyncIterable<PayloadChunk>,
  { sizeBytes, sha256 }: PayloadRef,
  progress: (step: string, progressPct: number) => void,
): AsyncIterable<PayloadChunk> {
  const hash = createHash("sha256");
  const total = Number(sizeBytes);
  let bytes = 0;
  let reportedPct = 0;
  for await (const chunk of source) {
    hash.update(chunk.data);
    bytes += chunk.data.byteLength;
    if (bytes > total) throw corrupt();
    yield chunk;
    const pct = Math.floor((bytes / total) * 100);
    if (pct < reportedPct + 10) continue;
    reportedPct = pct;
    progress("copying", pct);
  }
  if (bytes !== total || hash.digest("hex") !== sha256) throw corrupt();
}

function corrupt(): TaskFailed {
  return new TaskFailed("payload_corrupt", "The payload differs from its reference.", { retryable: true });
}
