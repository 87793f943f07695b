import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerReadableStream, type ServerWritableStream } from "@grpc/grpc-js";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import type { TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type PayloadChunk,
  PayloadChunkSchema,
  type ReadPayloadRequest,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type PayloadRef, PayloadRefSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { logRefusal, requirePeer, RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import type { MachineCertificates } from "../certificate/machine-certificates.ts";
import type { PayloadRateLimit } from "./payload-rate-limit.ts";
import type { PayloadStore } from "./payloads.ts";

export interface PayloadRpcsDeps {
  readonly installationId: string;
  readonly certificates: MachineCertificates;
  readonly payloads: PayloadStore;
  readonly payloadBytes: number;
  /** Stored payloads of one machine: number and total size. */
  readonly payloadQuota: { readonly count: number; readonly bytes: number };
  /** Rate of payload streams opened by one machine. */
  readonly rates: TokenBuckets;
  /** Rate limit shared by all machines of the controller. */
  readonly rateLimit: PayloadRateLimit;
  readonly log: Log;
}

/** Size of a chunk: small, so that a control frame does not wait long for a chunk before it. */
const chunkBytes = 32 << 10;
/** Maximum number of concurrent payload streams of one machine. */
const streamsPerMachine = 8;

/** The RPCs ReadPayload and WritePayload, which stream payloads of a machine's tasks in chunks. */
export function createPayloadRpcs(deps: PayloadRpcsDeps) {
  const { installationId, certificates, payloads, payloadBytes, payloadQuota, rateLimit, rates, log } = deps;
  const running = createKeyedCounter();

  async function admitted<T>(call: AnyPayloadCall, work: (machineId: string, signal: AbortSignal) => Promise<T>) {
    const peer = requirePeer(call, installationId, "machine");
    const machineId = peer.identity.id;
    if (!rates.admits(machineId, 1)) throw new RpcFailure(Code.RESOURCE_EXHAUSTED, "too many payload streams");
    const reservation = running.take([{ key: machineId, max: streamsPerMachine }]);
    if (reservation.exceeded !== undefined)
      throw new RpcFailure(Code.RESOURCE_EXHAUSTED, "too many concurrent payload streams");
    const cancellation = new AbortController();
    call.on("cancelled", () => cancellation.abort());
    try {
      await certificates.check(peer);
      return await work(machineId, cancellation.signal);
    } finally {
      reservation.release();
    }
  }

  return {
    readPayload(call: ServerWritableStream<ReadPayloadRequest, PayloadChunk>): void {
      admitted(call, async (machineId, signal) => {
        const { id } = call.request;
        const bytes = isId(id) ? await payloads.read(machineId, id, signal) : undefined;
        if (bytes === undefined) throw new RpcFailure(Code.NOT_FOUND, "no such payload");
        for await (const block of bytes) {
          for (const data of chunksOf(block)) {
            await rateLimit.acquire(machineId, data.byteLength, signal);
            if (!call.write(create(PayloadChunkSchema, { data }))) await once(call, "drain", { signal });
          }
        }
        call.end();
      }).catch((error: unknown) => {
        if (call.cancelled) return;
        logRefusal(log, "ReadPayload", call, error);
        call.emit("error", RpcFailure.from(error).status);
      });
    },
    async writePayload(call: ServerReadableStream<PayloadChunk, PayloadRef>, callback: RefCallback): Promise<void> {
      let ref: PayloadRef;
      try {
        ref = await admitted(call, async (machineId, signal) => {
          const usage = await payloads.usage(machineId, payloadQuota.count);
          if (usage.count >= payloadQuota.count || usage.sizeBytes >= payloadQuota.bytes)
            throw new RpcFailure(Code.RESOURCE_EXHAUSTED, "this machine has too many payloads");
          const bytes = dataOf(call, payloadBytes, (size) => rateLimit.acquire(machineId, size, signal), signal);
          const { id, sizeBytes, sha256 } = await payloads.write(machineId, bytes, signal);
          return create(PayloadRefSchema, { id, sizeBytes: BigInt(sizeBytes), sha256 });
        });
      } catch (error) {
        if (!call.cancelled) logRefusal(log, "WritePayload", call, error);
        callback(RpcFailure.from(error).status);
        return;
      }
      callback(null, ref);
    },
  };
}

type RefCallback = (error: RpcFailure["status"] | null, value?: PayloadRef) => void;

type AnyPayloadCall =
  | ServerWritableStream<ReadPayloadRequest, PayloadChunk>
  | ServerReadableStream<PayloadChunk, PayloadRef>;

async function* dataOf(
  call: ServerReadableStream<PayloadChunk, PayloadRef>,
  limitBytes: number,
  acquireBytes: (bytes: number) => Promise<void>,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  let sizeBytes = 0;
  for await (const chunk of call as AsyncIterable<PayloadChunk>) {
    if (signal.aborted) break;
    sizeBytes += chunk.data.byteLength;
    if (sizeBytes > limitBytes) {
      throw new RpcFailure(Code.RESOURCE_EXHAUSTED, `a payload has at most ${limitBytes} bytes`);
    }
    for (const data of chunksOf(chunk.data)) {
      await acquireBytes(data.byteLength);
      yield data;
    }
  }
  // A disconnect ends the iteration in the same way as a completed stream, and must not count as a complete payload.
  signal.throwIfAborted();
}

/** Splits a received chunk, which may be as large as a message. */
function* chunksOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

/** True for ids in the store's format. Other texts could be a path outside of the machine's prefix. */
function isId(id: string): boolean {
  return /^[A-Za-z0-9-]{1,64}$/.test(id);
}
