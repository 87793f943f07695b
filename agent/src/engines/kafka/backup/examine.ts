import type { Finding } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { readContents } from "./contents.ts";
import { createLeaderSessions } from "./leader-sessions.ts";
import { createPartitionReader } from "./partition-reader.ts";
import { withPrivateBroker } from "./restore.ts";

/** Reads all restored records from end to end, and compares their number with that of the backup. */
export async function examine(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<readonly Finding[]> {
  const { topics } = await readContents(instance);
  const present = topics.filter(({ partitions }) => partitions.length > 0);
  const [expected, found] = await withPrivateBroker(deps, instance, signal, async () => {
    const leaders = createLeaderSessions(instance, signal);
    const reader = createPartitionReader(leaders);
    let [stored, read] = [0, 0];
    try {
      for (const { name, partitions } of present)
        for (const [partition, { start, records }] of partitions.entries()) {
          stored += records;
          for await (const batches of reader.read({ topic: name, partition, start }))
            read += batches.reduce((sum, batch) => sum + batch.records, 0);
        }
    } finally {
      leaders.close();
    }
    return [stored, read] as const;
  });
  const detail = `${found} of ${expected} records of ${present.length} topics were read.`;
  return [{ name: "contents", passed: found === expected, detail }];
}
