/** The record's own value of a key. Inherited properties such as `constructor` are not found. */
export function lookUp<T>(record: Readonly<Record<string, T>>, key: string): T | undefined;
/** The object's own property of a name, such as a field of a message. */
export function lookUp(record: object, key: string): unknown;
export function lookUp(record: object, key: string): unknown {
  return Object.hasOwn(record, key) ? (record as Readonly<Record<string, unknown>>)[key] : undefined;
}
