type Table = Readonly<Record<string, unknown>>;
/** The intersection of the members of a union. */
type All<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type Gathered<T> = { readonly [K in keyof All<T[keyof T]>]: All<T[keyof T]>[K] };

/** Merges tables of groups. Throws when two have a row of the same name, with the names of both tables. */
export function gather<const T extends Readonly<Record<string, Table>>>(tables: T): Gathered<T> {
  const owners = new Map<string, string>();
  for (const [table, rows] of Object.entries(tables)) {
    for (const name of Object.keys(rows)) {
      const other = owners.get(name);
      if (other !== undefined) throw new Error(`${other} and ${table} both have ${name}`);
      owners.set(name, table);
    }
  }
  return Object.assign({}, ...Object.values(tables));
}
