/** The record's own member of this name; undefined for another name, also for names that every object inherits. */
export function memberOf<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
