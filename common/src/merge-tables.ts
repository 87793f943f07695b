type Table = Readonly<Record<string, unknown>>;
/** The intersection of the members of a union. */
type IntersectionOf<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type MergedTables<T> = { readonly [K in keyof IntersectionOf<T[keyof T]>]: IntersectionOf<T[keyof T]>[K] };

/** Merges tables of groups. Throws when two have a row of the same name, with the names of both tables. */
export function mergeTables<const T extends Readonly<Record<string, Table>>>(tables: T): MergedTables<T> {
  const owners = new Map<string, string>();
  for (const [table, rows] of Object.entries(tables)) {
    for (const name of Object.keys(rows)) {
      const owner = owners.get(name);
      if (owner !== undefined) throw new Error(`${owner} and ${table} both have ${name}`);
      owners.set(name, table);
    }
  }
  return Object.assign({}, ...Object.values(tables));
}
