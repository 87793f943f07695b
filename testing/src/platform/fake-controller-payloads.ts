import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { sendUnaryData, ServerReadableStream, ServerWritableStream } from "@grpc/grpc-js";
import { type PayloadChunk, PayloadChunkSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type PayloadRef, PayloadRefSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

const chunkBytes = 32_768;

/** The RPCs by which an agent reads and writes these payloads, by id. */
export function payloadsOfMemory(payloads: Map<string, Buffer>) {
  return {
    readPayload(call: ServerWritableStream<{ id: string }, unknown>) {
      const bytes = payloads.get(call.request.id) ?? Buffer.alloc(0);
      let at = 0;
      const more = () => {
        while (at < bytes.byteLength) {
          const data = bytes.subarray(at, at + chunkBytes);
          at += data.byteLength;
          if (!call.write(create(PayloadChunkSchema, { data }))) return void call.once("drain", more);
        }
        call.end();
      };
      more();
    },
    writePayload(call: ServerReadableStream<PayloadChunk, PayloadRef>, done: sendUnaryData<PayloadRef>) {
      const parts: Buffer[] = [];
      call.on("data", ({ data }: { data: Uint8Array }) => parts.push(Buffer.from(data)));
      call.on("end", () => {
        const bytes = Buffer.concat(parts);
        const id = `copy-${payloads.size}`;
        payloads.set(id, bytes);
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        done(null, create(PayloadRefSchema, { id, sizeBytes: BigInt(bytes.byteLength), sha256 }));
      });
    },
  };
}
