import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type AgentPackage, unpackAgent } from "@holdfast/common/agent-package.ts";
import { ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { UpgradeAgent } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { TaskFailed } from "../task-failed.ts";

const largestBytes = 64 << 20;

/** The package that the task names, and no other: its checksum is the task's, and its code has the task's digest. */
export async function fetchPackage(
  { package: payload, release, digest }: UpgradeAgent,
  channel: ControllerChannel,
  signal: AbortSignal,
): Promise<AgentPackage> {
  if (payload === undefined || payload.sizeBytes > largestBytes || !/^[0-9a-f]{32}$/.test(digest)) {
    throw new TaskFailed("invalid_task", "the task names no package of an agent");
  }
  const hash = createHash("sha256");
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const { data } of channel.readPayload(create(ReadPayloadRequestSchema, { id: payload.id }), signal)) {
    bytes += data.byteLength;
    if (bytes > Number(payload.sizeBytes)) break;
    hash.update(data);
    parts.push(data);
  }
  if (bytes !== Number(payload.sizeBytes) || hash.digest("hex") !== payload.sha256) {
    throw new TaskFailed("payload_corrupt", "the package is not what its reference says", { retryable: true });
  }
  const code = unpackAgent(Buffer.concat(parts));
  if (code.digest !== digest || code.release !== release) {
    throw new TaskFailed("payload_corrupt", `the package is ${code.release} ${code.digest}, not what the task names`);
  }
  return code;
}
