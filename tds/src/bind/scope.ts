import { SqlError } from "../run/sql-error.ts";
import type { TsqlType } from "../types/tsql-type.ts";

export interface ColumnSource {
  /** Name in PostgreSQL, in lower case unless it was quoted there. */
  readonly name: string;
  /** Name that T-SQL clients see. */
  readonly spelling: string;
  readonly type: TsqlType;
  readonly isNullable: boolean;
  readonly isIdentity?: boolean;
  readonly isComputed?: boolean;
}

export interface Source {
  /** Name in FROM, in lower case; empty for a source without one. */
  readonly alias: string;
  /** Lower-case name of the source's table, by which columns may be qualified; undefined for other sources. */
  readonly object: string | undefined;
  /** Columns of the source; undefined if they are unknown, so that any column name resolves to it. */
  readonly columns: readonly ColumnSource[] | undefined;
  /** Name in the text for PostgreSQL, if it is not the alias. */
  readonly text?: string;
}

export interface BoundColumn {
  readonly source: Source;
  readonly column: ColumnSource | undefined;
  readonly name: string;
}

/** Sources that the columns of one query may refer to; the enclosing queries' sources are searched next. */
export class Scope {
  readonly sources: Source[] = [];
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  add(source: Source): void {
    if (source.alias !== "" && this.sources.some(({ alias }) => alias === source.alias)) {
      const message = `The objects in the FROM clause have the same name "${source.alias}". Use aliases to distinguish them.`;
      throw new SqlError(1013, message);
    }
    this.sources.push(source);
  }

  /** Throws 207 for an unknown column, 209 for an ambiguous one, 4104 for an unknown qualifier. */
  resolve(path: readonly string[], line: number): BoundColumn {
    const name = path.at(-1) ?? "";
    const qualifier = path.at(-2)?.toLowerCase();
    const found = this.#find(name.toLowerCase(), qualifier, line);
    if (found !== undefined) return found;
    if (qualifier === undefined) throw new SqlError(207, `Invalid column name '${name}'.`, { line });
    if (this.#hasQualifier(qualifier)) throw new SqlError(207, `Invalid column name '${name}'.`, { line });
    throw new SqlError(4104, `The multi-part identifier "${path.join(".")}" could not be bound.`, { line });
  }

  #hasQualifier(qualifier: string): boolean {
    return (
      this.sources.some((source) => matches(source, qualifier)) ||
      (this.#outer !== undefined && this.#outer.#hasQualifier(qualifier))
    );
  }

  #find(name: string, qualifier: string | undefined, line: number): BoundColumn | undefined {
    const candidates = this.sources.filter((source) => qualifier === undefined || matches(source, qualifier));
    const found: BoundColumn[] = [];
    for (const source of candidates) {
      const columns = source.columns?.filter((column) => column.name.toLowerCase() === name) ?? [];
      const column = columns.find((each) => each.name === name) ?? columns[0];
      if (column !== undefined) found.push({ source, column, name: column.name });
    }
    if (found.length > 1) throw new SqlError(209, `Ambiguous column name '${name}'.`, { line });
    if (found[0] !== undefined) return found[0];
    const open = candidates.find((source) => source.columns === undefined);
    if (open !== undefined) return { source: open, column: undefined, name };
    return this.#outer === undefined ? undefined : this.#outer.#find(name, qualifier, line);
  }
}

export function matches(source: Source, qualifier: string): boolean {
  return source.alias === qualifier || (source.object === qualifier && source.alias === source.object);
}
