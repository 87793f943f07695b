/** The record's own member of this name; undefined for any other name, such as those that each object inherits. */
export function memberOf<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
