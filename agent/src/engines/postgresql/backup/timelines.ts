import { type LogPosition, LogRemoved } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { walsenderClient } from "../platform-client.ts";
import { formatLsn, parseLsn } from "./lsn.ts";

/** A range of the log on one timeline. */
export interface TimelineSpan {
  readonly timeline: string;
  readonly from: bigint;
  /** Position at which the log continues on the next timeline; undefined for the current one. */
  readonly to: bigint | undefined;
}

/** A former timeline and its end, the position at which the next timeline begins. */
export interface FormerTimeline {
  readonly timeline: string;
  readonly at: bigint;
}

/** Parses a timeline history file, such as `1\t0/3000000\tfailover`, oldest line first. */
export function parseHistory(text: string): FormerTimeline[] {
  return text.split("\n").flatMap((line) => {
    const found = /^(\d+)\s+([0-9A-Fa-f]+\/[0-9A-Fa-f]+)/.exec(line);
    return found?.[1] === undefined || found[2] === undefined ? [] : [{ timeline: found[1], at: parseLsn(found[2]) }];
  });
}

/** History file of a timeline with these ancestors. */
export function historyText(ancestors: readonly FormerTimeline[]): string {
  return ancestors.map(({ timeline, at }) => `${timeline}\t${formatLsn(at)}\tfailover\n`).join("");
}

/**
 * The log from a position on as spans of one timeline each. Throws LogRemoved if the engine's log does not
 * contain the position.
 */
export function spansFrom(
  { branch, position }: LogPosition,
  current: string,
  ancestors: readonly FormerTimeline[],
): readonly TimelineSpan[] {
  const from = parseLsn(position);
  if (branch === current) return [{ timeline: current, from, to: undefined }];
  const first = ancestors.findIndex(({ timeline }) => timeline === branch);
  const at = ancestors[first]?.at;
  if (at === undefined || at < from)
    throw new LogRemoved(`The engine's timeline ${current} does not continue from ${position} of ${branch}.`);
  const spans = ancestors.slice(first).map((each, index, all) => ({
    timeline: each.timeline,
    from: index === 0 ? from : (all[index - 1] as FormerTimeline).at,
    to: each.at,
  }));
  const last = (ancestors.at(-1) as FormerTimeline).at;
  return [...spans.filter((span) => span.from < span.to), { timeline: current, from: last, to: undefined }];
}

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
