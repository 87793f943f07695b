import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";

/** Owners of address blocks: one key for each block, such as `127.77`, whose value is the host's id. */
export interface AddressBlocks {
  /**
   * Assigns the block to the host. Returns undefined on success, otherwise the id of the host that owns it. The block
   * of a host that no longer exists (`exists`) is free.
   */
  claim(block: string, hostId: string, exists: (hostId: string) => Promise<boolean>): Promise<string | undefined>;
  /** All claimed blocks with the ids of their hosts. */
  all(): Promise<ReadonlyMap<string, string>>;
}

const prefix = `${root}/host-block/`;
const pageSize = 500;

export function createAddressBlocks(store: Store): AddressBlocks {
  return {
    async claim(block, hostId, exists) {
      const key = `${prefix}${block}`;
      for (;;) {
        const before = await store.get(key);
        if (before?.value === hostId) return undefined;
        if (before !== undefined && (await exists(before.value))) return before.value;
        const done = await store.commit({
          conditions: [{ key, modRevision: before?.modRevision ?? 0n }],
          puts: [{ key, value: hostId }],
          deletes: [],
        });
        if (done.committed) return undefined;
      }
    },
    async all() {
      const blocks = new Map<string, string>();
      for (let after: string | undefined; ; ) {
        const page = await store.list(prefix, { limit: pageSize, ...(after !== undefined && { after }) });
        for (const { key, value } of page.values) blocks.set(key.slice(prefix.length), value);
        after = page.values.at(-1)?.key;
        if (!page.more || after === undefined) return blocks;
      }
    },
  };
}
