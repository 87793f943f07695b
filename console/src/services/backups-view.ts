import type { ServiceBackups, TimeRange } from "@holdfast/sdk/responses.ts";

/** A part of the time line, as shares of its width. */
interface Part {
  readonly from: number;
  readonly width: number;
}

/** The restore window as a line: gaps in it, and the chosen moment; all in percent. */
export interface TimeLine {
  readonly start: number;
  readonly end: number;
  readonly gaps: readonly Part[];
}

/** The time line of a service; undefined while nothing can be restored. */
export function timeLineOf({ restorable, gaps }: Pick<ServiceBackups, "restorable" | "gaps">): TimeLine | undefined {
  if (restorable === null) return undefined;
  const [start, end] = [Date.parse(restorable.from), Date.parse(restorable.to)];
  const share = (time: string) => positionOf({ start, end }, Date.parse(time));
  return {
    start,
    end,
    gaps: gaps.map(({ from, to }) => ({ from: share(from), width: Math.max(0.5, share(to) - share(from)) })),
  };
}

/** Where a moment is on the line, from 0 to 100. */
export function positionOf({ start, end }: Pick<TimeLine, "start" | "end">, moment: number): number {
  if (end <= start) return 100;
  return Math.min(100, Math.max(0, ((moment - start) / (end - start)) * 100));
}

/** Why a moment cannot be restored; undefined when it can. */
export function faultOfMoment(
  { restorable, gaps }: Pick<ServiceBackups, "restorable" | "gaps">,
  moment: number,
): string | undefined {
  if (restorable === null) return "There is no completed backup yet.";
  if (Number.isNaN(moment)) return "Is no date and time.";
  if (moment < Date.parse(restorable.from)) return `Is before ${localText(restorable.from)}, the first moment.`;
  if (moment > Date.parse(restorable.to)) return `Is after ${localText(restorable.to)}, the last moment.`;
  const gap = gaps.find((each) => isIn(each, moment));
  return gap && `Is in a gap from ${localText(gap.from)} to ${localText(gap.to)}.`;
}

function isIn({ from, to }: TimeRange, moment: number): boolean {
  return Date.parse(from) < moment && moment < Date.parse(to);
}

function localText(time: string): string {
  return new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
}

/** A moment for an input of local date and time, with seconds. */
export function inputOf(moment: number): string {
  const local = new Date(moment - new Date(moment).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}
