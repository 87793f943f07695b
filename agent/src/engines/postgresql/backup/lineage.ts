import { LogGone, type LogPosition } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { walsenderClient } from "../platform-client.ts";
import { positionText } from "./position.ts";
import { type LeftTimeline, parseHistory, spansFrom, type TimelineSpan } from "./timelines.ts";

interface Lineage {
  readonly current: string;
  readonly left: readonly LeftTimeline[];
}

/** The timeline that the engine is on, and those that led to it. */
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
    // The first one has no history.
    if (current === "1") return { current, left: [] };
    const history = await client.query<{ content: string | Buffer }>(`TIMELINE_HISTORY ${current}`);
    return { current, left: parseHistory(String(history.rows[0]?.content ?? "")) };
  } finally {
    signal.removeEventListener("abort", abort);
    client.end().catch(abort);
  }
}

/** The log from a position on, or from a start on the timeline of now, timeline by timeline. */
export async function spansOf(
  instance: Instance,
  from: LogPosition | undefined,
  start: bigint,
  signal: AbortSignal,
): Promise<readonly TimelineSpan[]> {
  const { current, left } = await lineageOf(instance, signal);
  return spansFrom(from ?? { branch: current, position: positionText(start) }, current, left);
}

/** Where the engine's log left a timeline; undefined for the one that it is on. Throws LogGone for one that it never was on. */
export async function branchEnd(instance: Instance, branch: string, signal: AbortSignal): Promise<string | undefined> {
  const { current, left } = await lineageOf(instance, signal);
  if (branch === current) return undefined;
  const at = left.find(({ timeline }) => timeline === branch)?.at;
  if (at === undefined) throw new LogGone(`the engine, on timeline ${current}, never was on ${branch}`);
  return positionText(at);
}
