import { type Databases, schemaPrefix } from "../bind/databases.ts";
import { type ObjectName, objectName, qualified, quoteName } from "../bind/object-name.ts";
import type { Scope } from "../bind/scope.ts";
import type { TableCatalog, TableDefinition, UserFunction } from "../catalog/table-catalog.ts";
import type { Call, Path, Query, TableSource } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { castType } from "../types/backend-type.ts";
import { type Collation, collateText, findCollation } from "../types/collation.ts";
import { isCharacter, type TsqlType, type UserTypeName, type Value } from "../types/tsql-type.ts";

/** An SQL expression for PostgreSQL, with its type in T-SQL. */
export interface Typed {
  readonly sql: string;
  readonly type: TsqlType;
  /** True if the expression has a column's collation, so that comparisons need no COLLATE clause. */
  readonly isCollated: boolean;
  /** True if a COLLATE clause names the collation, before which that of columns yields. */
  readonly isExplicit?: boolean;
  readonly isNull?: boolean;
  /** True for the text of FOR JSON. */
  readonly isJson?: boolean;
  /** Name, nullability and table of a plain column. */
  readonly column?: {
    readonly spelling: string;
    readonly isNullable: boolean;
    readonly isIdentity: boolean;
    readonly source: string;
  };
}

export interface Variable {
  readonly type: TsqlType;
  value: Value;
}

/** Values of the session for functions such as SCOPE_IDENTITY() and for global variables such as @@ROWCOUNT. */
export interface SessionValues extends Databases {
  /** Collation of the service. */
  readonly collation: Collation;
  /** Current database in its spelling. */
  readonly databaseName: string;
  readonly user: string;
  readonly hostName: string;
  readonly appName: string;
  readonly identityInsert: string | undefined;
  /**
   * Value of a global variable (`@@rowcount`) or function without arguments (`scope_identity`); undefined if unknown.
   */
  value(name: string): Variable | undefined;
}

/** A column of a result. */
export interface OutputColumn {
  /** Name that the client sees; empty if the column has none. */
  readonly name: string;
  readonly type: TsqlType;
  readonly isNullable: boolean;
  readonly isIdentity: boolean;
  /** True for the text of FOR JSON, which is part of the JSON around it. */
  readonly isJson?: boolean;
  /** True for the literal NULL, whose type follows from where it stands. */
  readonly isNull?: boolean;
  /** True for a text in an operand of UNION that has no collation yet. */
  readonly isPlain?: boolean;
  /** Name in FROM of the table whose column it is, in lower case; undefined for other expressions. */
  readonly source?: string;
}

export interface EmittedQuery {
  readonly sql: string;
  readonly columns: readonly OutputColumn[];
}

/** Emitters of queries and calls. Expressions contain both, so they are passed in to avoid an import cycle. */
export interface Emitters {
  query(query: Query, context: EmitContext, outer?: Scope): EmittedQuery;
  call(call: Call, scope: Scope, context: EmitContext): Typed;
}

/** Names in the body of a function or trigger, which PostgreSQL runs: variables are no parameters there. */
export interface ModuleNames {
  /** Expressions of PostgreSQL by the names of variables in lower case. */
  readonly variables: ReadonlyMap<string, { readonly sql: string; readonly type: TsqlType }>;
  /** Definitions of table variables by their names in lower case. */
  readonly tables: ReadonlyMap<string, TableDefinition>;
  /** Condition for UPDATE(column); undefined outside of triggers. */
  readonly updated?: (column: string) => string;
}

export interface TableVariable {
  /** Name of the temporary table. */
  readonly name: string;
  /** Table type of the variable; undefined for a variable that declares its columns. */
  readonly type?: UserTypeName;
  /** True for a parameter: its table may be a variable of the caller. */
  readonly isReadOnly?: boolean;
  /** True if the table is a variable of the caller, which drops it. */
  readonly isBorrowed?: boolean;
}

/** The translation of one statement: its parameters and the names it can refer to. */
export class EmitContext {
  readonly values: Value[] = [];
  readonly #numbers = new Map<string, number>();
  readonly catalog: TableCatalog;
  readonly session: SessionValues;
  readonly #variables: ReadonlyMap<string, Variable>;
  readonly #tableVariables: ReadonlyMap<string, TableVariable>;
  /** Common table expressions by their name in lower case. */
  readonly common = new Map<string, TableDefinition>();
  readonly emitters: Emitters;
  /** The target of an UPDATE or DELETE, while an outer join with it is emitted under another name. */
  joinedTarget: { readonly source: TableSource; readonly alias: string } | undefined;
  readonly #module: ModuleNames | undefined;
  /** True for the text of a view, function or trigger: it describes its own database wherever it runs. */
  readonly #isStored: boolean;
  #aliases = 0;

  constructor(options: {
    readonly emitters: Emitters;
    readonly catalog: TableCatalog;
    readonly session: SessionValues;
    readonly variables: ReadonlyMap<string, Variable>;
    readonly tableVariables: ReadonlyMap<string, TableVariable>;
    readonly module?: ModuleNames;
    readonly isStored?: boolean;
  }) {
    this.#module = options.module;
    this.#isStored = options.isStored ?? options.module !== undefined;
    this.emitters = options.emitters;
    this.catalog = options.catalog;
    this.session = options.session;
    this.#variables = options.variables;
    this.#tableVariables = options.tableVariables;
  }

  /** Adds a variable as a parameter of the statement; each variable is one parameter, however often it occurs. */
  variable(name: string): Typed {
    const folded = name.toLowerCase();
    const local = this.#module?.variables.get(folded);
    if (local !== undefined) return { ...local, isCollated: isCharacter(local.type) };
    const isGlobal = folded.startsWith("@@");
    const variable = isGlobal ? this.session.value(folded) : this.#variables.get(folded);
    if (variable === undefined) {
      if (this.#tableVariables.has(folded)) throw new SqlError(137, `Must declare the scalar variable "${name}".`);
      throw new SqlError(137, `Must declare the scalar variable "${name}".`, { severity: 15 });
    }
    return this.parameter(folded, variable);
  }

  parameter(name: string, { type, value }: Variable): Typed {
    if (this.#module !== undefined) throw refuse("values of the session in modules", 0, name);
    let number = this.#numbers.get(name);
    if (number === undefined) {
      this.values.push(value);
      number = this.values.length;
      this.#numbers.set(name, number);
    }
    const cast = type.name === "char" || type.name === "nchar" ? "text" : castType(type);
    return { sql: `$${number}::${cast}`, type, isCollated: false };
  }

  /** The collation of a type of text: the service's, unless the type names another. */
  collationOf({ collation }: TsqlType): Collation {
    return (collation === undefined ? undefined : findCollation(collation)) ?? this.session.collation;
  }

  /** COLLATE clause of PostgreSQL for texts of the type. */
  collate(type: TsqlType): string {
    return collateText(this.collationOf(type));
  }

  objectName(path: Path, line: number): ObjectName {
    return objectName(path, this.session, line);
  }

  /** Definition of a table or common table expression; throws 208 if there is none. */
  table(path: Path, line: number): TableDefinition {
    const common = path.length === 1 ? this.common.get((path[0] ?? "").toLowerCase()) : undefined;
    if (common !== undefined) return common;
    const name = this.objectName(path, line);
    const table = this.catalog.find(name);
    if (table === undefined) throw new SqlError(208, `Invalid object name '${name.written}'.`, { line });
    const { catalogOf } = name;
    if (catalogOf === undefined || (catalogOf === this.session.database && !this.#isStored)) return table;
    const database = [catalogOf, schemaPrefix(catalogOf)].map(escapeLiteral).join(", ");
    return { ...table, text: `holdfast_tsql.in_database(${database}, NULL::${qualified(table)})` };
  }

  tableVariable(name: string, line: number): TableDefinition {
    const local = this.#module?.tables.get(name.toLowerCase());
    if (local !== undefined) return local;
    const variable = this.#tableVariables.get(name.toLowerCase());
    const object = variable && { schema: "pg_temp", name: variable.name, written: name };
    const table = object && this.catalog.find(object);
    if (table === undefined)
      throw new SqlError(1087, `Must declare the table variable "${name}".`, { severity: 15, line });
    return table;
  }

  /** The table variable that a statement changes; error 10700 for a parameter. */
  changedVariable(name: string): TableDefinition {
    if (this.#tableVariables.get(name.toLowerCase())?.isReadOnly === true) {
      const message = `The table-valued parameter "${name}" is READONLY and cannot be modified.`;
      throw new SqlError(10_700, message);
    }
    return this.tableVariable(name, 0);
  }

  /** Definition of a function that a user created; error 4121 if there is none, 229 if the role may not call it. */
  userFunction(path: Path, line: number): UserFunction {
    const name = this.objectName(path, line);
    const found = this.catalog.findFunction(name);
    if (found === undefined) {
      const message = `Cannot find the user-defined function "${name.written}", or the name is ambiguous.`;
      throw new SqlError(4121, message, { line });
    }
    if (!found.isExecutable) {
      const message = `The EXECUTE permission was denied on the object '${name.written}'.`;
      throw new SqlError(229, message, { severity: 14, line });
    }
    return found;
  }

  updated(column: string): string {
    if (this.#module?.updated === undefined)
      throw new SqlError(156, "Incorrect syntax near the keyword 'UPDATE'.", { severity: 15 });
    return this.#module.updated(column);
  }

  /** An alias that is unique in the statement and that clients cannot write, such as `":1"`. */
  freshAlias(): string {
    this.#aliases += 1;
    return quoteName(`:${this.#aliases}`);
  }
}

/** Translation of a T-SQL function; its arguments are already translated to PostgreSQL. */
export interface FunctionEmission {
  readonly minimum: number;
  readonly maximum: number;
  emit(
    list: readonly Typed[],
    context: EmitContext,
  ): {
    readonly sql: string;
    readonly type: TsqlType;
    /** True for a text of JSON, which is part of the JSON around it. */
    readonly isJson?: boolean;
  };
}
