import { SqlError } from "../run/sql-error.ts";
import type { TsqlType } from "../types/tsql-type.ts";

export interface ColumnSource {
  /** As PostgreSQL has it. */
  readonly name: string;
  /** As T-SQL shows it. */
  readonly spelling: string;
  readonly type: TsqlType;
  readonly isNullable: boolean;
  readonly isIdentity?: boolean;
  readonly isComputed?: boolean;
}

export interface Source {
  /** As it is written in FROM, in lower case. */
  readonly alias: string;
  /** The object behind it, in lower case, for columns with the name of their table. */
  readonly object: string | undefined;
  /** Undefined for sources of unknown columns. */
  readonly columns: readonly ColumnSource[] | undefined;
}

export interface BoundColumn {
  readonly source: Source;
  readonly column: ColumnSource | undefined;
  readonly name: string;
}

/** The sources of one query, inside of those of the queries around it. */
export class Scope {
  readonly sources: Source[] = [];
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  add(source: Source): void {
    if (source.alias !== "" && this.sources.some(({ alias }) => alias === source.alias)) {
      const message = `Two sources of FROM have the name "${source.alias}"; give one an alias.`;
      throw new SqlError(1013, message);
    }
    this.sources.push(source);
  }

  /** Errors 207, 209 and 4104, as for names that do not resolve. */
  resolve(path: readonly string[], line: number): BoundColumn {
    const name = path.at(-1) ?? "";
    const qualifier = path.at(-2)?.toLowerCase();
    const found = this.#find(name.toLowerCase(), qualifier, line);
    if (found !== undefined) return found;
    if (qualifier === undefined) throw new SqlError(207, `Invalid column name '${name}'.`, { line });
    if (this.#hasQualifier(qualifier)) throw new SqlError(207, `Invalid column name '${name}'.`, { line });
    throw new SqlError(4104, `No source of the query has the name "${path.join(".")}".`, { line });
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
    if (found.length > 1)
      throw new SqlError(209, `The column name '${name}' is ambiguous: several sources have it.`, { line });
    if (found[0] !== undefined) return found[0];
    const open = candidates.find((source) => source.columns === undefined);
    if (open !== undefined) return { source: open, column: undefined, name };
    return this.#outer === undefined ? undefined : this.#outer.#find(name, qualifier, line);
  }
}

export function matches(source: Source, qualifier: string): boolean {
  return source.alias === qualifier || (source.object === qualifier && source.alias === source.object);
}
