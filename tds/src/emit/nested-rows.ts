/** One level of the objects of FOR JSON AUTO or the elements of FOR XML AUTO: the columns of one table. */
export interface Level {
  /** Expressions of texts over a row, none of which is NULL; rows with the same texts are one object. */
  readonly parts: readonly string[];
  /** Text of an object, by its parts and the texts of the objects in it. */
  wrap(parts: readonly string[], inner: string | undefined): string;
}

/**
 * The objects of the first level: a source of FROM with the alias `":rows"`, and the aggregate over it. Consecutive
 * rows are one object if the texts of its level and of those around it are the same; each row is an object of the last
 * level.
 */
export function nestRows(
  levels: readonly Level[],
  source: string,
  separator: string,
): { readonly from: string; readonly aggregate: string } {
  const partsOf = (index: number) => (levels[index]?.parts ?? []).map((_, part) => `p${index}_${part}`);
  const all = levels.map((_, index) => partsOf(index));
  const selected = levels.flatMap(({ parts }, index) => parts.map((sql, part) => `${sql} AS p${index}_${part}`));
  const numbered = `SELECT row_number() OVER () AS n, ${selected.join(", ")} FROM ${source}`;
  const outer = levels.slice(0, -1);
  const breaks = outer.map((_, index) => {
    const parts = all.slice(0, index + 1).flat();
    const changed = parts.map((part) => `t.${part} COLLATE "C" IS DISTINCT FROM lag(t.${part}) OVER (ORDER BY t.n)`);
    return `(CASE WHEN ${changed.join(" OR ")} THEN 1 ELSE 0 END) AS b${index}`;
  });
  const marked = `SELECT t.*${breaks.map((each) => `, ${each}`).join("")} FROM (${numbered}) AS t`;
  const groups = outer.map((_, index) => `sum(t.b${index}) OVER (ORDER BY t.n) AS g${index}`);
  let from = `SELECT t.*${groups.map((each) => `, ${each}`).join("")} FROM (${marked}) AS t`;
  for (let index = levels.length - 1; index > 0; index -= 1) {
    const retained = [...outer.slice(0, index).map((_, group) => `g${group}`), ...all.slice(0, index).flat()];
    const text = aggregateOf(levels, index, all, separator);
    from = `SELECT min(n) AS n, ${retained.join(", ")}, ${text} AS inner_text FROM (${from}) AS t GROUP BY ${retained.join(", ")}`;
  }
  return { from: `(${from}) AS ":rows"`, aggregate: aggregateOf(levels, 0, all, separator) };
}

function aggregateOf(
  levels: readonly Level[],
  index: number,
  parts: readonly (readonly string[])[],
  separator: string,
): string {
  const inner = index === levels.length - 1 ? undefined : "inner_text";
  const text = levels[index]?.wrap(parts[index] ?? [], inner) ?? "''";
  return `string_agg(${text}, '${separator}' ORDER BY n)`;
}

/**
 * Groups columns by their sources, in the order of first columns. A column without a source is of the level before; if
 * no column has a source, all are of the first one.
 */
export function levelsOf<C extends { readonly source?: string }>(
  columns: readonly C[],
  first: string,
): { readonly source: string; readonly columns: readonly C[] }[] {
  const levels: { source: string; columns: C[] }[] = [];
  const before: C[] = [];
  for (const column of columns) {
    const { source } = column;
    const level = source === undefined ? levels.at(-1) : levels.find((each) => each.source === source);
    if (level !== undefined) level.columns.push(column);
    else if (source === undefined) before.push(column);
    else levels.push({ source, columns: [...before.splice(0), column] });
  }
  return levels.length === 0 ? [{ source: first, columns: before }] : levels;
}
