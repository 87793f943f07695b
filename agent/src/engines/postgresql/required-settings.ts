import { lookUp } from "@holdfast/common/look-up.ts";
/**
 * Settings that a replay needs at least as much of as the engine that wrote the log had (CheckRequiredParameterValues
 * in PostgreSQL). `control` is the name in the output of pg_controldata.
 */
const required = [
  { name: "max_connections", control: "max_connections" },
  { name: "max_worker_processes", control: "max_worker_processes" },
  { name: "max_wal_senders", control: "max_wal_senders" },
  { name: "max_prepared_transactions", control: "max_prepared_xacts" },
  { name: "max_locks_per_transaction", control: "max_locks_per_xact" },
] as const;

export const requiredSettingNames: readonly string[] = required.map(({ name }) => name);

/** Values by the setting's name. */
export type RequiredSettings = Readonly<Record<string, number>>;

/** Settings of the log that the data replayed last, from the output of pg_controldata. */
export function controlSettings(printed: string): RequiredSettings {
  const found = required.flatMap(({ name, control }) => {
    const value = new RegExp(`^${control} setting:\\s+(\\d+)$`, "m").exec(printed)?.[1];
    return value === undefined ? [] : [[name, Number(value)] as const];
  });
  return Object.fromEntries(found);
}

/** Maximum of each required setting. Other names are ignored. */
export function maxSettings(...all: readonly RequiredSettings[]): RequiredSettings {
  const greatest = requiredSettingNames.flatMap((name) => {
    const values = all
      .map((settings) => lookUp(settings, name))
      .filter((value) => Number.isSafeInteger(value)) as number[];
    return values.length === 0 ? [] : [[name, Math.max(...values)] as const];
  });
  return Object.fromEntries(greatest);
}

/** True if the first has a greater value of some setting than the second. */
export function exceeds(some: RequiredSettings, others: RequiredSettings): boolean {
  return requiredSettingNames.some((name) => (lookUp(some, name) ?? 0) > (lookUp(others, name) ?? 0));
}

/**
 * Settings that the engine lacked when it ended the recovery, from its last lines; undefined for another reason.
 */
export function lackingSettings(output: string): RequiredSettings | undefined {
  if (!/(recovery aborted|hot standby is not possible) because of insufficient parameter settings/.test(output))
    return undefined;
  const found = output.matchAll(
    /(\w+) = \d+ is a lower setting than on the primary server, where its value was (\d+)\./g,
  );
  return maxSettings(...[...found].map(([, name = "", value]) => ({ [name]: Number(value) })));
}

/** Formats settings for users, such as `max_connections = 200, max_wal_senders = 10`. */
export function printSettings(settings: RequiredSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
}
