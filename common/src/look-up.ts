/** The record's own value of a key, whatever text that is: what every object inherits, such as `constructor`, is not found. */
export function lookUp<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
