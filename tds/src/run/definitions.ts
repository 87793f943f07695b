import { lookUp } from "@holdfast/common/look-up.ts";
import { type ObjectName, qualified, temporarySchema } from "../bind/object-name.ts";
import type { StoredModule } from "../catalog/module-text.ts";
import { emitCreateModule, kindOf } from "../emit/create-module.ts";
import { emitCreateTable, emitDdl } from "../emit/ddl.ts";
import { emitGrant } from "../emit/grants.ts";
import { parameterTypes, plainType } from "../emit/module-body.ts";
import type {
  ColumnDefinition,
  CreateModule,
  Ddl,
  Grant,
  ModuleDefinition,
  Path,
  ProcedureDefinition,
  TableConstraint,
} from "../parse/ast.ts";
import { parseModuleText } from "../parse/batch.ts";
import { DatabaseError } from "./backend.ts";
import type { RequestContext } from "./request-context.ts";
import type { Session } from "./session.ts";
import { SqlError } from "./sql-error.ts";

/** Runs a statement that defines, changes or drops an object, and GRANT and REVOKE. */
export async function runDdl(ddl: Ddl, line: number, request: RequestContext): Promise<void> {
  const { session, frame } = request;
  await session.loadTables(ddl, frame);
  const context = session.context(frame, ddl.kind === "createView");
  checkDatabase(ddl, line, session);
  if (ddl.kind === "grant") {
    await runGrant(ddl, context.objectName(ddl.path, line), line, request);
    return;
  }
  if (
    ddl.kind === "createTable" &&
    ddl.path.at(-1)?.startsWith("#") === true &&
    ddl.path.at(-1)?.startsWith("##") === false
  ) {
    await createTable(context.objectName(ddl.path, line), ddl.columns, ddl.constraints, request);
    return;
  }
  if (ddl.kind === "createProcedure") await checkParameters(ddl.text, request);
  if (ddl.kind === "createProcedure" && ddl.replaces === "required") {
    const name = context.objectName(ddl.path, line);
    if ((await session.catalog.procedure(name)) === undefined)
      throw new SqlError(208, `Invalid object name '${name.written}'.`, { line });
  }
  try {
    if (ddl.kind === "createModule")
      await createModule(ddl, context.objectName(ddl.definition.path, line), line, request);
    else {
      if (ddl.kind === "drop") await checkModules(ddl, line, request);
      await runAll(emitDdl(ddl, context).statements, request);
    }
  } catch (error) {
    const isMissing = error instanceof DatabaseError && ["42P01", "42704", "42883", "3F000"].includes(error.code ?? "");
    if (isMissing && (ddl.kind === "drop" || ddl.kind === "dropIndex")) {
      const name = ddl.kind === "drop" ? ddl.paths.map((path) => path.join(".")).join(", ") : ddl.name;
      throw new SqlError(3701, `Cannot drop '${name}', because it does not exist or you have no permission.`, {
        severity: 11,
        line,
      });
    }
    if (error instanceof DatabaseError && error.code === "2BP01" && ddl.kind === "drop" && ddl.object === "TYPE") {
      const name = ddl.paths.map((path) => path.join(".")).join(", ");
      throw new SqlError(3732, `Cannot drop type '${name}' because it is being referenced by another object.`, {
        line,
      });
    }
    throw error;
  } finally {
    session.catalog.clear();
  }
}

/** Error 2715 for an unknown type in a procedure, 352 for a parameter of a table type without READONLY. */
async function checkParameters(text: string, { session }: RequestContext): Promise<void> {
  const { parameters } = (await session.types.resolve(parseModuleText(text))) as ProcedureDefinition;
  const isFaulty = parameters.find(({ type, isReadOnly }) => type.table !== undefined && !isReadOnly);
  if (isFaulty !== undefined) throw readOnlyError(isFaulty.name);
}

export function readOnlyError(name: string): SqlError {
  const message = `The table-valued parameter "${name}" must be declared with the READONLY option.`;
  return new SqlError(352, message, { severity: 15 });
}

/** Errors 166, 2108 and 1763: modules, views and foreign keys belong to the database of their tables. */
function checkDatabase(ddl: Ddl, line: number, session: Session): void {
  const isOther = (path: Path, home = session.database) => {
    const name = (path.at(-3) ?? "").toLowerCase();
    return name !== "" && name !== home && path.at(-1)?.startsWith("#") !== true;
  };
  const named = ddl.kind === "createModule" ? ddl.definition : ddl;
  const kinds = { createView: "VIEW", createProcedure: "PROCEDURE", function: "FUNCTION", trigger: "TRIGGER" } as const;
  if (named.kind === "createView" || named.kind === "createProcedure" || ddl.kind === "createModule") {
    if ("path" in named && isOther(named.path)) {
      const word = lookUp(kinds, named.kind) ?? "";
      const message = `'CREATE/ALTER ${word}' does not allow specifying the database name as a prefix to the object name.`;
      throw new SqlError(166, message, { severity: 15, line });
    }
  }
  if (named.kind === "trigger" && isOther(named.table)) {
    const message = `Cannot create trigger on '${named.table.join(".")}' as the target is not in the current database.`;
    throw new SqlError(2108, message, { severity: 15, line });
  }
  if (ddl.kind !== "createTable" && ddl.kind !== "alterTable") return;
  const home = (ddl.path.at(-3) ?? "").toLowerCase() || session.database;
  const added = ddl.kind === "createTable" ? ddl : ddl.action.kind === "add" ? ddl.action : undefined;
  const constraints = [
    ...(added?.constraints ?? []),
    ...(added?.columns.flatMap((column) => column.constraints) ?? []),
  ];
  for (const constraint of constraints) {
    if (constraint.kind !== "foreignKey") continue;
    const { references } = constraint;
    const target = (references.at(-3) ?? "").toLowerCase() || session.database;
    if (target === home) continue;
    const message = `Cross-database foreign key references are not supported. Foreign key '${references.join(".")}'.`;
    throw new SqlError(1763, message, { line });
  }
}

/** Error 3701 for DROP FUNCTION and DROP TRIGGER of another kind of routine. */
async function checkModules(
  { object, paths, ifExists }: Extract<Ddl, { kind: "drop" }>,
  line: number,
  { session, frame }: RequestContext,
): Promise<void> {
  if (object !== "FUNCTION" && object !== "TRIGGER") return;
  for (const path of paths) {
    const name = session.context(frame).objectName(path, line);
    const found = await session.catalog.module(name);
    if (found === undefined && ifExists) continue;
    const isTrigger = found !== undefined && found !== "foreign" && found.kind === "TR";
    if (found !== undefined && isTrigger === (object === "TRIGGER")) continue;
    const kind = object.toLowerCase();
    const message = `Cannot drop the ${kind} '${name.written}', because it does not exist or you do not have permission.`;
    throw new SqlError(3701, message, { severity: 11, line });
  }
}

async function createModule(ddl: CreateModule, name: ObjectName, line: number, request: RequestContext): Promise<void> {
  const { session } = request;
  const { definition } = ddl;
  const found = await withoutOrphan(name, await session.catalog.module(name), request);
  if (found === undefined && definition.replaces === "required")
    throw new SqlError(208, `Invalid object name '${name.written}'.`, { line });
  if (found === "foreign" || (found !== undefined && definition.replaces === "none"))
    throw new SqlError(2714, `There is already an object named '${name.name}' in the database.`, { line });
  // Its own DROP of an orphan has cleared the cached definitions.
  await session.loadTables(ddl, request.frame);
  const create = emitCreateModule(ddl, name, (names) => session.moduleContext(names));
  if (found === undefined) {
    await runAll(create, request);
    return;
  }
  const previous = parseModuleText(found.text);
  if (previous.kind !== definition.kind) {
    const message = `Cannot alter '${name.written}': it is a ${previous.kind}.`;
    throw new SqlError(2010, message, { line });
  }
  // A function with the same arguments and result keeps its grants and what depends on it.
  if (
    definition.kind === "function" &&
    found.kind === kindOf(definition) &&
    signature(previous) === signature(definition)
  ) {
    const replace = create.map((text) => text.replace(/^CREATE FUNCTION /, "CREATE OR REPLACE FUNCTION "));
    await runAll(replace, request);
    return;
  }
  const drop = definition.kind === "trigger" ? "() CASCADE" : "";
  await runAll([`DROP FUNCTION ${qualified(name)}${drop}`, ...create], request);
}

/** Drops the function of a trigger whose table was dropped: in T-SQL its triggers are dropped with it. */
async function withoutOrphan(
  name: ObjectName,
  found: StoredModule | "foreign" | undefined,
  request: RequestContext,
): Promise<StoredModule | "foreign" | undefined> {
  if (found === undefined || found === "foreign" || found.kind !== "TR") return found;
  const used = "SELECT FROM pg_trigger WHERE tgfoid = ($1 || '()')::regprocedure LIMIT 1";
  if ((await request.session.backend.query(used, [qualified(name)])).length > 0) return found;
  await runAll([`DROP FUNCTION ${qualified(name)}()`], request);
  return undefined;
}

/** Types of the arguments and of a scalar result in PostgreSQL; undefined if the columns of rows may differ. */
function signature(definition: ModuleDefinition): string | symbol {
  if (definition.kind !== "function" || definition.returns.kind !== "scalar") return Symbol("other");
  return `${parameterTypes(definition.parameters)} ${plainType(definition.returns.type)}`;
}

async function runGrant(grant: Grant, name: ObjectName, line: number, request: RequestContext): Promise<void> {
  const roles: string[] = [];
  for (const principal of grant.principals) roles.push(await roleOf(principal, line, request));
  try {
    const module = await request.session.catalog.module(name);
    const hasRows = module !== undefined && module !== "foreign" && ["IF", "TF"].includes(module.kind);
    await runAll([emitGrant(grant, name, roles, hasRows)], request);
  } catch (error) {
    const isMissing = error instanceof DatabaseError && ["42P01", "42883", "3F000"].includes(error.code ?? "");
    if (!isMissing) throw error;
    const message = `Cannot find the object '${name.written}', because it does not exist or you do not have permission.`;
    throw new SqlError(15_151, message, { line });
  }
}

/** Name of a principal in PostgreSQL, where names differ by case. */
async function roleOf(principal: string, line: number, { session }: RequestContext): Promise<string> {
  if (principal === "public") return principal;
  const sql = "SELECT rolname FROM pg_roles WHERE lower(rolname) = lower($1) ORDER BY rolname = $1 DESC LIMIT 1";
  const [row] = await session.backend.query(sql, [principal]);
  if (row?.[0] != null) return row[0];
  const message = `Cannot find the principal '${principal}', because it does not exist or you do not have permission.`;
  throw new SqlError(15_151, message, { line });
}

export async function createTable(
  name: ObjectName,
  columns: readonly ColumnDefinition[],
  constraints: readonly TableConstraint[],
  request: RequestContext,
): Promise<void> {
  const context = request.session.context(request.frame);
  await runAll(emitCreateTable(name, columns, constraints, context), request);
  request.session.catalog.clear();
  if (name.schema !== temporarySchema) return;
  request.frame.temporaryTables.add(name.name);
  request.session.catalog.spell(
    name,
    columns.map((column) => column.name),
  );
}

/** Runs the statements for one DDL statement of T-SQL in one transaction. */
export async function runAll(statements: readonly string[], { session }: RequestContext): Promise<void> {
  const { backend } = session;
  if (backend.inTransaction || statements.length === 1) {
    for (const statement of statements) await backend.query(statement);
    return;
  }
  await backend.script("BEGIN");
  try {
    for (const statement of statements) await backend.query(statement);
    await backend.script("COMMIT");
  } catch (error) {
    await backend.script("ROLLBACK");
    throw error;
  }
}
