// Times travel as whole milliseconds: the same entry always has the same key, however often it is inserted.

/** SQL: the time of a column with milliseconds since 1970. */
export function timeOf(column: string): string {
  return `timestamptz 'epoch' + ${column} * interval '1 millisecond'`;
}

/** SQL: milliseconds since 1970, as text, of a column with a time. */
export function millisecondsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::bigint::text`;
}
