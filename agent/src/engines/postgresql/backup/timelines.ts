import { LogGone, type LogPosition } from "../../backup-facet.ts";
import { parsePosition, positionText } from "./position.ts";

/** A stretch of log that is all on one timeline. */
export interface TimelineSpan {
  readonly timeline: string;
  readonly from: bigint;
  /** Where the log goes on on another timeline; undefined for the one of now. */
  readonly to: bigint | undefined;
}

/** A timeline that was left, and where. */
export interface LeftTimeline {
  readonly timeline: string;
  readonly at: bigint;
}

/** Pure: the lines of a timeline's history file, oldest first. */
export function parseHistory(text: string): LeftTimeline[] {
  return text.split("\n").flatMap((line) => {
    const found = /^(\d+)\s+([0-9A-Fa-f]+\/[0-9A-Fa-f]+)/.exec(line);
    return found?.[1] === undefined || found[2] === undefined
      ? []
      : [{ timeline: found[1], at: parsePosition(found[2]) }];
  });
}

/** Pure: the history file of a timeline that these led to. */
export function historyText(left: readonly LeftTimeline[]): string {
  return left.map(({ timeline, at }) => `${timeline}\t${positionText(at)}\tfailover\n`).join("");
}

/** Pure: the log from a position on, timeline by timeline. Throws LogGone where the engine's log never came by there. */
export function spansFrom(
  { branch, position }: LogPosition,
  current: string,
  left: readonly LeftTimeline[],
): readonly TimelineSpan[] {
  const from = parsePosition(position);
  if (branch === current) return [{ timeline: current, from, to: undefined }];
  const first = left.findIndex(({ timeline }) => timeline === branch);
  const at = left[first]?.at;
  if (at === undefined || at < from)
    throw new LogGone(`the engine is on timeline ${current}, which does not go on from ${position} of ${branch}`);
  const passed = left.slice(first).map((each, index, all) => ({
    timeline: each.timeline,
    from: index === 0 ? from : (all[index - 1] as LeftTimeline).at,
    to: each.at,
  }));
  const last = (left.at(-1) as LeftTimeline).at;
  return [...passed.filter((span) => span.from < span.to), { timeline: current, from: last, to: undefined }];
}
