import type { ObjectFacts, ObjectStore } from "@holdfast/common/objects/object-store.ts";

const batch = 1_000;

/** Every object under a prefix with a key greater than `after`, in key order. */
export async function* objectsBelow(
  objects: Pick<ObjectStore, "list">,
  prefix: string,
  { after: from = "", signal }: { readonly after?: string; readonly signal?: AbortSignal } = {},
): AsyncGenerator<ObjectFacts> {
  for (let after = from, more = true; more; ) {
    signal?.throwIfAborted();
    const page = await objects.list(prefix, { after, limit: batch });
    yield* page.objects;
    after = page.objects.at(-1)?.key ?? after;
    more = page.more;
  }
}

/** Deletes every object under a prefix for which `isRetained` is false. A call can be interrupted and repeated. */
export async function deleteBelow(
  objects: Pick<ObjectStore, "list" | "delete">,
  prefix: string,
  signal: AbortSignal,
  isRetained: (key: string) => boolean = () => false,
): Promise<void> {
  for await (const { key } of objectsBelow(objects, prefix, { signal })) {
    signal.throwIfAborted();
    if (!isRetained(key)) await objects.delete(key);
  }
}
