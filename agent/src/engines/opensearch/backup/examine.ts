import { readFile } from "node:fs/promises";
import type { Finding } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { call } from "../api.ts";
import { readCopies } from "../figures.ts";
import { isVisible, restoredFile } from "../layout.ts";
import { withPrivateEngine } from "./private-engine.ts";
import type { Restored } from "./restore.ts";

/** Opens all restored shards in an engine that the examination starts, and counts their documents. */
export async function examine(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<readonly Finding[]> {
  const expected = JSON.parse(await readFile(restoredFile(instance), "utf8")) as Restored;
  const opened = await withPrivateEngine(deps, instance, signal, async () => {
    await call(
      instance,
      { method: "GET", path: "/_cluster/health?wait_for_no_initializing_shards=true&timeout=1h" },
      signal,
    );
    return (await readCopies(instance, signal)).filter(({ index, isPrimary }) => isPrimary && isVisible(index));
  });
  const documents = opened.reduce((sum, shard) => sum + shard.documents, 0);
  const detail = `${opened.length} of ${expected.shards} shards of ${expected.indices} indices were opened, with ${documents} documents.`;
  return [{ name: "contents", passed: opened.length === expected.shards, detail }];
}
