// Times are stored with millisecond precision, so that the same entry always has the same primary key.

/** SQL: the timestamp of a column of milliseconds since 1970. */
export function timeOf(column: string): string {
  return `timestamptz 'epoch' + ${column} * interval '1 millisecond'`;
}

/** SQL: a timestamp column in milliseconds since 1970, as text. */
export function millisecondsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::bigint::text`;
}
