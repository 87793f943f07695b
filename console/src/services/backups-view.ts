import type { BackupSettingsChange } from "@holdfast/sdk/requests.ts";
import type { Backup, BackupSettings, ServiceBackups, TimeRange } from "@holdfast/sdk/responses.ts";

/** A part of the time line, in percent of its width. */
interface Part {
  readonly from: number;
  readonly width: number;
}

/** The restorable window as a line with its gaps, whose positions are in percent. */
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

/** Position of a time on the line, 0 to 100. */
export function positionOf({ start, end }: Pick<TimeLine, "start" | "end">, timeMs: number): number {
  if (end <= start) return 100;
  return Math.min(100, Math.max(0, ((timeMs - start) / (end - start)) * 100));
}

/** Reason why the service cannot be restored to a time; undefined if it can. */
export function faultOfTime(
  { restorable, gaps }: Pick<ServiceBackups, "restorable" | "gaps">,
  timeMs: number,
): string | undefined {
  if (restorable === null) return "There is no completed backup yet.";
  if (Number.isNaN(timeMs)) return "Is not a date and time.";
  if (timeMs < Date.parse(restorable.from)) return `Is before ${localText(restorable.from)}, the earliest time.`;
  if (timeMs > Date.parse(restorable.to)) return `Is after ${localText(restorable.to)}, the latest time.`;
  const gap = gaps.find((each) => isIn(each, timeMs));
  return gap && `Is in a gap from ${localText(gap.from)} to ${localText(gap.to)}.`;
}

function isIn({ from, to }: TimeRange, timeMs: number): boolean {
  return Date.parse(from) < timeMs && timeMs < Date.parse(to);
}

/** A time in the local time zone, such as "Nov 30, 2026, 16:42:59". */
export function localText(time: string): string {
  return new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
}

/** A time as the value of an input of local date and time, with seconds. */
export function timeInputOf(timeMs: number): string {
  const local = new Date(timeMs - new Date(timeMs).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** True for a backup that is still taken. */
export function isUnfinished({ status }: Pick<Backup, "status">): boolean {
  return status === "pending" || status === "running";
}

/** Reason why a backup cannot be verified; undefined if it can. */
export function verificationRefusal({ status }: Pick<Backup, "status">): string | undefined {
  if (status === "verifying") return "The backup is being verified.";
  return status === "completed" ? undefined : "A failed backup has nothing to verify.";
}

/** Reason why a backup cannot be deleted; undefined if it can. */
export function deletionRefusal({ status, backup_type: type }: Pick<Backup, "status" | "backup_type">) {
  if (type === "automated") return "An automated backup is deleted at the end of its retention.";
  return status === "completed" || status === "failed" ? undefined : "The backup is not finished yet.";
}

/** A backup by its time, in UTC, for a choice and a confirmation. */
export function nameOfBackup({ created_at: time }: Pick<Backup, "created_at">): string {
  return `${time.slice(0, 10)} ${time.slice(11, 19)} UTC`;
}

/** The input of the form of the schedule. */
export interface ScheduleInput {
  /** Hour and minute in UTC, such as "03:05". */
  readonly time: string;
  readonly days: string;
}

export function scheduleOf({ hour, minute, retention_days: days }: BackupSettings): ScheduleInput {
  return { time: `${twoDigits(hour)}:${twoDigits(minute)}`, days: String(days) };
}

/** The change of the edited fields alone. */
export function scheduleChangeOf({ time, days }: Partial<ScheduleInput>): BackupSettingsChange {
  const [hour, minute] = (time ?? "").split(":").map(Number);
  return { ...(time !== undefined && { hour, minute }), ...(days !== undefined && { retention_days: Number(days) }) };
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
