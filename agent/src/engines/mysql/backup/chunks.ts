/** Values of the first column of a table's primary key, in the order of the key. */
export interface KeyRange {
  readonly column: string;
  readonly first: bigint;
  readonly last: bigint;
}

/** Target size of a chunk in the engine's files, in bytes. */
const chunkBytes = 64 << 20;
const maxChunks = 1_000;

/** True for a table that is divided if its key allows it. */
export const isLarge = (bytes: number): boolean => bytes > chunkBytes;

/**
 * Conditions that divide a table into chunks of similar ranges; undefined is the complete table. The first and
 * the last one are open, so that every row is in exactly one.
 */
export function chunkConditions(bytes: number, key: KeyRange | undefined): readonly (string | undefined)[] {
  const count = BigInt(Math.min(Math.ceil(bytes / chunkBytes), maxChunks));
  if (key === undefined || count < 2n || key.last - key.first < count) return [undefined];
  const { column, first, last } = key;
  const bounds = Array.from(
    { length: Number(count) - 1 },
    (_, index) => first + ((last - first) * BigInt(index + 1)) / count,
  );
  return [...bounds, undefined].map((to, index) => {
    const from = bounds[index - 1];
    const conditions = [
      ...(from === undefined ? [] : [`${column} >= ${from}`]),
      ...(to === undefined ? [] : [`${column} < ${to}`]),
    ];
    return conditions.join(" AND ");
  });
}
