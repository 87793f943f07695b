import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { concatIncrementally } from "@holdfast/common/incremental.ts";
import { openPayload, sealPayload } from "@holdfast/common/sealed-payload.ts";
import { type PackedContent, PackedContentSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PayloadStore } from "./payloads.ts";

/**
 * Contents of quick tasks. Contents up to 64 KiB are inline; larger ones are in the object store, sealed under a key
 * that is part of the task.
 */
export interface PackedContents {
  pack(machineId: string, bytes: Uint8Array, signal: AbortSignal): Promise<PackedContent>;
  /** Throws MACHINE_UNREACHABLE if the object does not exist. */
  unpack(machineId: string, content: PackedContent, signal: AbortSignal): Promise<Uint8Array>;
  /** Deletes the stored object, if the content has one. */
  drop(machineId: string, content: PackedContent): Promise<void>;
}

const inlineBytes = 64 << 10;

export function createPackedContents(payloads: PayloadStore): PackedContents {
  return {
    async pack(machineId, bytes, signal) {
      if (bytes.byteLength <= inlineBytes) return create(PackedContentSchema, { inline: bytes });
      const { sealed, key } = await sealPayload(bytes);
      const { id, sizeBytes, sha256 } = await payloads.write(machineId, inChunks(sealed), signal);
      return create(PackedContentSchema, { sealed: { payload: { id, sizeBytes: BigInt(sizeBytes), sha256 }, key } });
    },

    async unpack(machineId, { inline, sealed }, signal) {
      if (sealed?.payload === undefined) return inline;
      const bytes = await payloads.read(machineId, sealed.payload.id, signal);
      if (bytes === undefined)
        throw new HoldfastError(
          "MACHINE_UNREACHABLE",
          "The machine's response was deleted before it was read. Try again.",
        );
      const chunks: Uint8Array[] = [];
      for await (const chunk of bytes) chunks.push(chunk);
      return await openPayload(await concatIncrementally(chunks), sealed.key);
    },

    async drop(machineId, { sealed }) {
      if (sealed?.payload !== undefined) await payloads.remove(machineId, sealed.payload.id);
    },
  };
}

async function* inChunks(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += inlineBytes) yield bytes.subarray(at, at + inlineBytes);
}
