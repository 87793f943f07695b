import { qualified, quoteName } from "../bind/object-name.ts";
import type { ColumnSource } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import { assignTo } from "../emit/conversions.ts";
import { reseedText } from "../emit/dml.ts";
import { castType } from "../types/backend-type.ts";
import { isCharacter, type TsqlType, type Value } from "../types/tsql-type.ts";
import type { Backend } from "./backend.ts";

const rowsMax = 1_000;
const charactersMax = 1 << 20;

export interface RowInsertOptions {
  readonly table: TableDefinition;
  /** Columns of the table, in the order of the values. */
  readonly columns: readonly ColumnSource[];
  /** Types of the values. */
  readonly types: readonly TsqlType[];
  /** Expressions of PostgreSQL that replace NULLs, by the name of the column. */
  readonly defaults?: ReadonlyMap<string, string>;
}

/** Inserts rows of text values, many by one statement. `end` inserts the last ones. */
export class RowInsert {
  rowCount = 0;
  #rows: (readonly Value[])[] = [];
  #characters = 0;
  readonly #backend: Backend;
  readonly #options: RowInsertOptions;
  readonly #sql: string;

  constructor(backend: Backend, options: RowInsertOptions) {
    this.#backend = backend;
    this.#options = options;
    this.#sql = insertText(options);
  }

  async add(row: readonly Value[]): Promise<void> {
    this.#rows.push(row);
    for (const value of row) this.#characters += value?.length ?? 0;
    if (this.#rows.length >= rowsMax || this.#characters >= charactersMax) await this.#insert();
  }

  async end(): Promise<void> {
    if (this.#rows.length > 0) await this.#insert();
    const identity = this.#options.columns.find(({ isIdentity }) => isIdentity === true);
    if (identity !== undefined && this.rowCount > 0)
      await this.#backend.query(reseedText(this.#options.table, identity.name));
  }

  async #insert(): Promise<void> {
    const rows = this.#rows;
    this.#rows = [];
    this.#characters = 0;
    const values = this.#options.columns.map((_, index) => arrayText(rows.map((row) => row[index] ?? null)));
    await this.#backend.query(this.#sql, values);
    this.rowCount += rows.length;
  }
}

function insertText({ table, columns, types, defaults }: RowInsertOptions): string {
  const names = columns.map(({ name }) => quoteName(name)).join(", ");
  const list = columns.map((column, index) => {
    const type = types[index] ?? column.type;
    const cast = isCharacter(type) && type.name !== "xml" ? "text" : castType(type);
    const value = assignTo({ sql: `r.c${index}::${cast}`, type, isCollated: false }, column.type);
    const otherwise = defaults?.get(column.name);
    return otherwise === undefined ? value : `COALESCE(${value}, ${otherwise})`;
  });
  const arrays = columns.map((_, index) => `$${index + 1}::text[]`).join(", ");
  const aliases = columns.map((_, index) => `c${index}`).join(", ");
  return `INSERT INTO ${qualified(table)} (${names}) SELECT ${list.join(", ")} FROM unnest(${arrays}) AS r (${aliases})`;
}

/** Array literal of PostgreSQL. */
function arrayText(values: readonly Value[]): string {
  const items = values.map((value) =>
    value === null ? "NULL" : `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`,
  );
  return `{${items.join(",")}}`;
}
