import { type DatabaseName, type LayoutMode, schemaPrefix } from "../bind/databases.ts";
import { objectName, qualified } from "../bind/object-name.ts";
import type { ColumnSource } from "../bind/scope.ts";
import { createTableCatalog, type TableCatalog, type TableDefinition } from "../catalog/table-catalog.ts";
import { createUserTypes, type UserTypes } from "../catalog/user-types.ts";
import { EmitContext, type ModuleNames, type SessionValues, type Variable } from "../emit/context.ts";
import { targetTable } from "../emit/changed-target.ts";
import { insertColumns } from "../emit/dml.ts";
import { emitCall } from "../emit/functions.ts";
import { emitQuery } from "../emit/queries.ts";
import type { Path, Target } from "../parse/ast.ts";
import type { Collation } from "../types/collation.ts";
import { type Backend, escapeLiteral } from "./backend.ts";
import type { BulkTarget } from "./bulk-target.ts";
import { type Cursor, type CallFrame, newCallFrame } from "./call-frame.ts";
import { defaultOptions, type SetOptions } from "./set-options.ts";
import type { SqlError } from "./sql-error.ts";
import { Transaction } from "./transaction.ts";
import type { Usage } from "./usage.ts";

const emitters = { query: emitQuery, call: emitCall };
/** Text of @@version; SQLAlchemy reads the number after the dash. */
const version = "Microsoft SQL Server 2022 (compatible) - 16.0.1000.6, Holdfast on PostgreSQL";

/** State of one client's session, which outlives its requests: backend, transaction, options, prepared statements. */
export class Session {
  readonly backend: Backend;
  readonly catalog: TableCatalog;
  readonly types: UserTypes;
  readonly layoutMode: LayoutMode;
  readonly collation: Collation;
  /** Database of sessions that name no other one, in lower case. */
  readonly defaultDatabase: string;
  readonly transaction: Transaction;
  /** False if DDL of other sessions is not reported, so that the catalog is valid for one request only. */
  readonly isNotified: boolean;
  readonly caught: SqlError[] = [];
  readonly prepared = new Map<number, { readonly text: string; readonly declaration: string }>();
  /** GLOBAL cursors by their names in lower case. */
  readonly cursors = new Map<string, Cursor>();
  /** @@FETCH_STATUS. */
  fetchStatus = -1;
  options: SetOptions = defaultOptions();
  tryDepth = 0;
  rowCount = 0;
  lastError = 0;
  /** Last identity of the session, and of the batch or procedure that runs. */
  lastIdentity: string | null = null;
  scopeIdentity: string | null = null;
  identityInsert: string | undefined;
  bulkTarget: BulkTarget | undefined;
  readonly usage: Usage;
  readonly #user: string;
  readonly #hostName: string;
  readonly #appName: string;
  readonly #initialDatabase: DatabaseName;
  #current: DatabaseName;
  /** True if a rollback undoes the database that the backend's views of the catalog describe. */
  #changedInTransaction = false;
  #temporaries = 0;
  #handles = 0;

  constructor(options: {
    readonly backend: Backend;
    readonly layoutMode: LayoutMode;
    readonly collation: Collation;
    readonly database: DatabaseName;
    readonly defaultDatabase: string;
    readonly user: string;
    readonly hostName: string;
    readonly appName: string;
    readonly isNotified: boolean;
    readonly usage: Usage;
  }) {
    this.usage = options.usage;
    this.isNotified = options.isNotified;
    this.backend = options.backend;
    this.layoutMode = options.layoutMode;
    this.collation = options.collation;
    this.defaultDatabase = options.defaultDatabase;
    this.#initialDatabase = options.database;
    this.#current = options.database;
    this.#user = options.user;
    this.#hostName = options.hostName;
    this.#appName = options.appName;
    const query = (sql: string, values: readonly string[]) => this.backend.query(sql, values);
    this.types = createUserTypes(query, (path) => objectName(path, this, 0));
    this.catalog = createTableCatalog(query, this.types, this.collation);
    this.transaction = new Transaction(options.backend, () => this.#settleDatabase());
  }

  /** Current database, in lower case. */
  get database(): string {
    return this.#current.folded;
  }

  /** Current database, in the spelling of its creation. */
  get databaseName(): string {
    return this.#current.spelling;
  }

  /** Changes the current database: names without one, and views of the catalog, are of it. */
  async changeDatabase(database: DatabaseName): Promise<void> {
    this.#current = database;
    await this.#announceDatabase();
  }

  /** Runs with another current database, such as that of a procedure, or in which USE may change it until the end. */
  async inDatabase<T>(database: DatabaseName | undefined, run: () => Promise<T>): Promise<T> {
    const previous = this.#current;
    if (database !== undefined && database.folded !== previous.folded) await this.changeDatabase(database);
    try {
      return await run();
    } finally {
      if (this.#current.folded !== previous.folded) await this.changeDatabase(previous);
    }
  }

  async #announceDatabase(): Promise<void> {
    if (this.layoutMode === "single-db") return;
    this.#changedInTransaction ||= this.backend.inTransaction;
    // A transaction that failed accepts nothing before its rollback.
    if (this.backend.hasFailed) return;
    await this.backend.script(databaseSettings(this.#current));
  }

  async #settleDatabase(): Promise<void> {
    if (!this.#changedInTransaction) return;
    this.#changedInTransaction = this.backend.inTransaction;
    await this.backend.script(databaseSettings(this.#current));
  }

  /** Runs a dynamic text, whose SET options end with it. */
  async withOwnOptions<T>(run: () => Promise<T>): Promise<T> {
    const outer = this.options;
    this.options = { ...outer };
    try {
      return await run();
    } finally {
      // The backend keeps its lock_timeout.
      this.options = { ...outer, lockTimeoutMs: this.options.lockTimeoutMs };
    }
  }

  nextTemporary(): number {
    this.#temporaries += 1;
    return this.#temporaries;
  }

  nextHandle(): number {
    this.#handles += 1;
    return this.#handles;
  }

  /** Restores the state of a new connection, for a request with the RESETCONNECTION flag. */
  async reset(keepsTransaction: boolean): Promise<void> {
    if (!keepsTransaction && this.transaction.count > 0) await this.transaction.rollback(undefined);
    if (this.transaction.count === 0)
      await this.backend.script("CLOSE ALL; DISCARD TEMP; RESET lock_timeout; RESET holdfast_tsql.isolation");
    if (this.database !== this.#initialDatabase.folded) await this.changeDatabase(this.#initialDatabase);
    this.options = defaultOptions();
    this.transaction.isolation = "read committed";
    this.catalog.clear();
    this.prepared.clear();
    this.cursors.clear();
    this.fetchStatus = -1;
    this.identityInsert = undefined;
    this.bulkTarget = undefined;
    this.lastIdentity = null;
    this.scopeIdentity = null;
    this.rowCount = 0;
    this.lastError = 0;
  }

  context(frame: CallFrame, isStored = false): EmitContext {
    return new EmitContext({
      isStored,
      emitters: emitters,
      catalog: this.catalog,
      session: this.#values(frame),
      variables: frame.variables,
      tableVariables: frame.tableVariables,
    });
  }

  /** A context for the body of a function or trigger. */
  moduleContext(module: ModuleNames): EmitContext {
    const frame = newCallFrame();
    return new EmitContext({
      emitters,
      catalog: this.catalog,
      session: this.#values(frame),
      variables: frame.variables,
      tableVariables: frame.tableVariables,
      module,
    });
  }

  /** Loads the definitions of the tables that a statement names. */
  async loadTables(node: unknown, frame: CallFrame): Promise<void> {
    const context = this.context(frame);
    const names = tablesOf(node).map((path) => context.objectName(path, 0));
    for (const { name } of frame.tableVariables.values()) names.push({ schema: "pg_temp", name, written: name });
    const functions = functionsOf(node).map((path) => context.objectName(path, 0));
    if (names.length + functions.length === 0) return;
    await this.transaction.withStatementSavepoint(async () => {
      await this.catalog.load(names);
      await this.catalog.loadFunctions(functions);
    });
  }

  /** The table of an INSERT, and the columns that its rows have. A bulk load may have those of an IDENTITY. */
  async insertTarget(
    target: Target,
    names: readonly string[],
    frame: CallFrame,
    isBulk = false,
  ): Promise<{ table: TableDefinition; columns: readonly ColumnSource[] }> {
    await this.loadTables(target, frame);
    const context = this.context(frame);
    const table = targetTable(target, context);
    return {
      table,
      columns: insertColumns(table, names, isBulk || context.session.identityInsert === qualified(table)),
    };
  }

  #values(frame: CallFrame): SessionValues {
    return {
      layoutMode: this.layoutMode,
      collation: this.collation,
      database: this.database,
      databaseName: this.databaseName,
      user: this.#user,
      hostName: this.#hostName,
      appName: this.#appName,
      identityInsert: this.identityInsert,
      value: (name) => this.#value(name, frame),
    };
  }

  #value(name: string, frame: CallFrame): Variable | undefined {
    const int = (value: number | undefined): Variable => ({
      type: { name: "int" },
      value: value === undefined ? null : String(value),
    });
    const text = (value: string | null): Variable => ({ type: { name: "nvarchar", length: 4_000 }, value });
    const caught = this.caught.at(-1);
    const { transaction } = this;
    switch (name) {
      case "@@rowcount":
        return int(this.rowCount);
      case "rowcount_big":
        return { type: { name: "bigint" }, value: String(this.rowCount) };
      case "@@error":
        return int(this.lastError);
      case "@@trancount":
        return int(transaction.count);
      case "xact_state":
        return int(transaction.count === 0 ? 0 : transaction.isDoomed ? -1 : 1);
      case "@@identity":
        return { type: { name: "decimal", precision: 38, scale: 0 }, value: this.lastIdentity };
      case "scope_identity":
        return { type: { name: "decimal", precision: 38, scale: 0 }, value: this.scopeIdentity };
      case "@@spid":
        return { type: { name: "smallint" }, value: String(this.backend.processId % 32_767) };
      case "@@microsoftversion":
        return { type: { name: "int" }, value: String((16 << 24) + 1_000) };
      case "@@version":
        return text(version);
      case "@@servername":
        return text("holdfast");
      case "@@language":
        return text("us_english");
      case "@@nestlevel":
        return int(frame.depth);
      case "@@cursor_rows":
      case "@@procid":
        return int(0);
      case "@@fetch_status":
        return int(this.fetchStatus);
      case "@@lock_timeout":
        return int(this.options.lockTimeoutMs);
      case "@@datefirst":
        return { type: { name: "tinyint" }, value: "7" };
      case "@@max_precision":
        return { type: { name: "tinyint" }, value: "38" };
      case "@@textsize":
        return int(2_147_483_647);
      case "@@options":
        return int(5_496);
      case "host_name":
        return text(this.#hostName);
      case "app_name":
        return text(this.#appName);
      case "error_number":
        return int(caught?.number);
      case "error_severity":
        return int(caught?.severity);
      case "error_state":
        return int(caught?.state);
      case "error_line":
        return int(caught?.line);
      case "error_message":
        return text(caught?.message ?? null);
      case "error_procedure":
        return text(caught?.procedure ?? null);
      default:
        return undefined;
    }
  }
}

/** Statement that sets the database that the views of the catalog describe. */
export function databaseSettings({ folded, spelling }: DatabaseName): string {
  const values = { "holdfast_tsql.database": spelling, "holdfast_tsql.prefix": schemaPrefix(folded) };
  const settings = Object.entries(values).map(
    ([name, value]) => `set_config('${name}', ${escapeLiteral(value)}, false)`,
  );
  return `SELECT ${settings.join(", ")}`;
}

/** Paths of the functions that users may have created, in a part of the syntax tree. */
function functionsOf(node: unknown, found: Path[] = []): Path[] {
  if (Array.isArray(node)) for (const each of node) functionsOf(each, found);
  else if (typeof node === "object" && node !== null) {
    const { kind, call } = node as { kind?: string; call?: { path: Path } };
    if (call !== undefined && kind === "call" && call.path.length > 1) found.push(call.path);
    if (call !== undefined && kind === "function") found.push(call.path);
    for (const value of Object.values(node)) functionsOf(value, found);
  }
  return found;
}

/** Paths of all tables in a part of the syntax tree. */
function tablesOf(node: unknown, found: Path[] = []): Path[] {
  if (Array.isArray(node)) for (const each of node) tablesOf(each, found);
  else if (typeof node === "object" && node !== null) {
    const { kind, path, table } = node as { kind?: string; path?: Path; table?: Path };
    if ((kind === "table" || kind === "alterTable") && Array.isArray(path)) found.push(path);
    if ((kind === "createIndex" || kind === "trigger") && Array.isArray(table)) found.push(table);
    for (const value of Object.values(node)) tablesOf(value, found);
  }
  return found;
}
