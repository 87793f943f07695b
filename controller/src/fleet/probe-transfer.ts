import { createHash, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { CopyPayloadSchema, PayloadRefSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "./fleet.ts";
import type { PayloadRateLimit } from "./payload/payload-rate-limit.ts";
import type { PayloadStore } from "./payload/payloads.ts";
import { unreachable } from "./session/session.ts";

const blockBytes = 64 << 10;
const timeoutMs = 120_000;

/**
 * Sends random bytes to a machine, which returns them, by payload reference. Returns the duration and the SHA-256 (hex)
 * of both copies. Throws MACHINE_UNREACHABLE if the machine cannot transfer them, and an Error if the copies differ.
 */
export async function probeTransfer(
  {
    fleet,
    payloads,
    payloadRateLimit: rateLimit,
  }: { fleet: Fleet; payloads: PayloadStore; payloadRateLimit: PayloadRateLimit },
  machineId: string,
  sizeBytes: number,
  signal?: AbortSignal,
): Promise<{ durationMs: number; sha256: string }> {
  const startedMs = performance.now();
  const sent = await payloads.write(
    machineId,
    rateLimited(randomBlocks(sizeBytes), machineId, rateLimit, signal),
    signal,
  );
  const written = [sent.id];
  try {
    const payload = create(PayloadRefSchema, { id: sent.id, sizeBytes: BigInt(sent.sizeBytes), sha256: sent.sha256 });
    const request = {
      ownerId: machineId,
      generation: 0,
      term: 0,
      lane: "bulk" as const,
      input: { case: "copyPayload" as const, value: create(CopyPayloadSchema, { payload }) },
      deadlineMs: timeoutMs,
    };
    const result = await fleet.run(machineId, request, timeoutMs, signal);
    const copy = result.output.case === "copyPayload" ? result.output.value.payload : undefined;
    if (copy === undefined) throw unreachable(result.failure?.message ?? "The machine did not return the bytes.");
    written.push(copy.id);
    const copied = await payloads.read(machineId, copy.id, signal);
    if (copied === undefined) throw new Error("the payload that the machine returned is not in the object store");
    const sha256 = await hashOf(rateLimited(copied, machineId, rateLimit, signal));
    if (sha256 !== sent.sha256) throw new Error("the machine returned a payload with another digest");
    return { durationMs: Math.round(performance.now() - startedMs), sha256 };
  } finally {
    for (const id of written) await payloads.remove(machineId, id);
  }
}

async function* randomBlocks(sizeBytes: number): AsyncIterable<Uint8Array> {
  for (let remaining = sizeBytes; remaining > 0; remaining -= blockBytes)
    yield randomBytes(Math.min(remaining, blockBytes));
}

async function* rateLimited(
  blocks: AsyncIterable<Uint8Array>,
  machineId: string,
  rateLimit: PayloadRateLimit,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  for await (const block of blocks) {
    await rateLimit.acquire(machineId, block.byteLength, signal);
    yield block;
  }
}

async function hashOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const block of bytes) hash.update(block);
  return hash.digest("hex");
}
