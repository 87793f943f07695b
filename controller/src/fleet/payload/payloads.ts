import { createHash } from "node:crypto";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { PayloadStore } from "./payload-store.ts";

const prefix = "payloads/";
/** What is for machines of any id: never swept by its age, and removed by who put it there. */
const sharedPrefix = "shared-payloads/";
const sharedId = /^shared-/;

/** Key of the object that every machine may read as the payload of this id, which begins with "shared-". */
export function sharedKeyOf(id: string): string {
  return `${sharedPrefix}${id}`;
}
const pageSize = 500;

/** Payloads of tasks as objects, each machine's under a path of its own. Throws when one is over `maxBytes`. */
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
          if (sizeBytes > maxBytes) throw new Error(`a payload is over ${maxBytes} bytes`);
          hash.update(block);
          yield block;
        }
      }
      await objects.put(keyOf(machineId, id), counted(), signal === undefined ? {} : { signal });
      return { id, sizeBytes, sha256: hash.digest("hex") };
    },
    read: (machineId, id) => objects.get(sharedId.test(id) ? sharedKeyOf(id) : keyOf(machineId, id)),
    async held(machineId, most) {
      const { objects: found } = await objects.list(`${prefix}${machineId}/`, { limit: most });
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
