import type { Instance } from "../../engine-driver.ts";
import { inEachDatabase, listDatabases } from "../database-list.ts";
import { withSession } from "../session.ts";
import type { QueueSessions } from "./queue-sessions.ts";
import { sample } from "./stats.ts";

/** The figures of all queues of these databases together; empty without a database. */
export async function sampleQueues(
  sessions: QueueSessions,
  instance: Instance,
  databases: readonly string[],
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  if (databases.length === 0) return {};
  const sum = { ready: 0, inflight: 0, dead: 0, oldest: 0 };
  const list = () => sessions.alone(() => withSession(instance, signal, listDatabases));
  const found = await inEachDatabase(list, (database) => sessions.use(instance, database, signal, sample), databases);
  for (const figures of found) {
    sum.ready += figures.readyMessages;
    sum.inflight += figures.inflightMessages;
    sum.dead += figures.deadMessages;
    sum.oldest = Math.max(sum.oldest, figures.oldestAgeSeconds);
  }
  return {
    queue_ready_messages: sum.ready,
    queue_inflight_messages: sum.inflight,
    queue_dead_messages: sum.dead,
    queue_oldest_age_seconds: sum.oldest,
  };
}
