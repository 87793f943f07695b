import { hash } from "#kernel/runtime/ownership.ts";

/** When the daily backup of a service begins, UTC, and for how long automated ones are kept. */
export interface BackupSettings {
  readonly hour: number;
  readonly minute: number;
  readonly retentionDays: number;
}

const dayMs = 86_400_000;
const minuteMs = 60_000;
const minutesOfDay = 24 * 60;
const defaultRetentionDays = 7;

/** Pure: the settings of a service whose owner chose none. Always the same for one id; times are spread evenly over the day. */
export function defaultSettings(serviceId: string): BackupSettings {
  const minutes = hash(`backup-time/${serviceId}`) % minutesOfDay;
  return { hour: Math.floor(minutes / 60), minute: minutes % 60, retentionDays: defaultRetentionDays };
}

/** Pure: the first daily time after this moment. */
export function nextDaily({ hour, minute }: BackupSettings, after: number): number {
  const within = (hour * 60 + minute) * minuteMs;
  const today = Math.floor(after / dayMs) * dayMs + within;
  return today > after ? today : today + dayMs;
}
