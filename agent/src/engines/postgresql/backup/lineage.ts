import { LogRemoved, type LogPosition } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { walsenderClient } from "../platform-client.ts";
import { formatLsn } from "./lsn.ts";
import { type FormerTimeline, parseHistory, spansFrom, type TimelineSpan } from "./timelines.ts";

interface Lineage {
  readonly current: string;
  readonly ancestors: readonly FormerTimeline[];
}

/** The engine's current timeline and its ancestors. */
async function lineageOf(instance: Instance, signal: AbortSignal): Promise<Lineage> {
  signal.throwIfAborted();
  const client = walsenderClient(instance);
  client.on("error", () => undefined);
  const abort = () => client.connection.stream.destroy();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    const { rows } = await client.query<{ timeline: number }>("IDENTIFY_SYSTEM");
    const current = String(rows[0]?.timeline);
    // Timeline 1 has no history file.
    if (current === "1") return { current, ancestors: [] };
    const history = await client.query<{ content: string | Buffer }>(`TIMELINE_HISTORY ${current}`);
    return { current, ancestors: parseHistory(String(history.rows[0]?.content ?? "")) };
  } finally {
    signal.removeEventListener("abort", abort);
    client.end().catch(abort);
  }
}

/** The log from a position on, or from `start` on the current timeline, as spans of one timeline each. */
export async function spansOf(
  instance: Instance,
  from: LogPosition | undefined,
  start: bigint,
  signal: AbortSignal,
): Promise<readonly TimelineSpan[]> {
  const { current, ancestors } = await lineageOf(instance, signal);
  return spansFrom(from ?? { branch: current, position: formatLsn(start) }, current, ancestors);
}

/**
 * End of a timeline in the engine's history, as a position; undefined for the current timeline. Throws LogRemoved for a
 * timeline that is not an ancestor of the current one.
 */
export async function branchEnd(instance: Instance, branch: string, signal: AbortSignal): Promise<string | undefined> {
  const { current, ancestors } = await lineageOf(instance, signal);
  if (branch === current) return undefined;
  const at = ancestors.find(({ timeline }) => timeline === branch)?.at;
  if (at === undefined) throw new LogRemoved(`The engine's timeline ${current} does not descend from ${branch}.`);
  return formatLsn(at);
}
