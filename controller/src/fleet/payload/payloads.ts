import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { concatIncrementally } from "@holdfast/common/incremental.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { openPayload, sealPayload } from "@holdfast/common/sealed-payload.ts";
import { type PackedContent, PackedContentSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/**
 * Payloads of tasks that are too large for etcd or for a frame, in the object store. Each belongs to one machine; the
 * id of a payload that every machine may read begins with `shared-`.
 */
export interface PayloadStore {
  /** Stores the bytes under a new id. Throws for a payload over the limit and stores nothing then. */
  write(machineId: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StoredPayload>;
  /** Undefined if the machine has no such payload. */
  read(machineId: string, id: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Number and total size of the machine's payloads, of at most `limit` payloads. */
  usage(machineId: string, limit: number): Promise<{ readonly count: number; readonly sizeBytes: number }>;
  remove(machineId: string, id: string, signal?: AbortSignal): Promise<void>;
  /** Deletes payloads written before this time (ms since 1970), shared ones excepted. Resolves with their number. */
  sweep(before: number, signal?: AbortSignal): Promise<number>;
}

export interface StoredPayload {
  readonly id: string;
  readonly sizeBytes: number;
  /** SHA-256 of the bytes, in hex. */
  readonly sha256: string;
}

const prefix = "payloads/";
/** Prefix of payloads for every machine. They are not swept by age; their writer deletes them. */
const sharedPrefix = "shared-payloads/";
const sharedId = /^shared-/;
const pageSize = 500;

/** Object key of a shared payload, whose id begins with `shared-`, such as `shared-agent-<digest>`. */
export function sharedKeyOf(id: string): string {
  return `${sharedPrefix}${id}`;
}

/** Stores payloads as objects with the key `payloads/<machine id>/<payload id>`. */
export function createPayloads(
  objects: ObjectStore,
  { newId, maxBytes }: { newId: () => string; maxBytes: number },
): PayloadStore {
  const keyOf = (machineId: string, id: string) => `${prefix}${machineId}/${id}`;
  return {
    async write(machineId, bytes, signal) {
      const id = newId();
      const hash = createHash("sha256");
      let sizeBytes = 0;
      async function* counted(): AsyncGenerator<Uint8Array> {
        for await (const block of bytes) {
          sizeBytes += block.byteLength;
          if (sizeBytes > maxBytes) throw new Error(`a payload has at most ${maxBytes} bytes`);
          hash.update(block);
          yield block;
        }
      }
      await objects.put(keyOf(machineId, id), counted(), signal === undefined ? {} : { signal });
      return { id, sizeBytes, sha256: hash.digest("hex") };
    },
    read: (machineId, id) => objects.get(sharedId.test(id) ? sharedKeyOf(id) : keyOf(machineId, id)),
    async usage(machineId, limit) {
      const { objects: found } = await objects.list(`${prefix}${machineId}/`, { limit });
      return { count: found.length, sizeBytes: found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
    },
    remove: (machineId, id) => objects.delete(keyOf(machineId, id)),
    async sweep(before, signal) {
      let removed = 0;
      let after: string | undefined;
      for (;;) {
        signal?.throwIfAborted();
        const page = await objects.list(prefix, { limit: pageSize, ...(after === undefined ? {} : { after }) });
        for (const { key, modifiedAt } of page.objects) {
          if (modifiedAt >= before) continue;
          await objects.delete(key);
          removed += 1;
        }
        after = page.objects.at(-1)?.key;
        if (!page.more || after === undefined) return removed;
      }
    },
  };
}

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
