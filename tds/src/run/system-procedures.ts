import { lookUp } from "@holdfast/common/look-up.ts";
import type { Execute } from "../parse/ast.ts";
import { parseParameters, parsePath } from "../parse/execute-statements.ts";
import type { Value } from "../types/tsql-type.ts";
import { homeOf, inOwnDatabase } from "./databases.ts";
import { sqlErrorOf } from "./errors.ts";
import { converted } from "./evaluation.ts";
import { newCallFrame } from "./call-frame.ts";
import { depthInside, runBatch } from "./interpreter.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";
import type { Results } from "./results.ts";
import { SqlError } from "./sql-error.ts";
import { bindTable, typeClash } from "./table-parameters.ts";
import { callUserProcedure } from "./user-procedures.ts";

type Procedure = (list: readonly EvaluatedArgument[], request: RequestContext) => Promise<number>;

const preparedMax = 10_000;

/** Calls a procedure of the system or of a user; error 2812 for an unknown name. */
export async function callProcedure(
  call: Execute,
  list: readonly EvaluatedArgument[],
  request: RequestContext,
): Promise<number> {
  const name = (call.path.at(-1) ?? "").toLowerCase();
  const procedure = lookUp(procedures, name);
  if (procedure === undefined) return callUserProcedure(call.path, list, request);
  const home = await homeOf(call.path, request.session);
  return inOwnDatabase(home, request, () => procedure(list, request));
}

/** Argument by its name, else by its position: drivers use other names for the first arguments. */
function argument(list: readonly EvaluatedArgument[], name: string, position: number): EvaluatedArgument | undefined {
  return list.find((each) => each.name?.toLowerCase() === name) ?? list[position];
}

function unnamed(found: EvaluatedArgument | undefined): EvaluatedArgument | undefined {
  return found?.name === undefined || found.name === "" ? found : undefined;
}

function text(list: readonly EvaluatedArgument[], name: string, position: number): string {
  return argument(list, name, position)?.value ?? "";
}

/** Runs a text with parameters; OUTPUT parameters get the values of their variables. */
async function runText(
  statement: string,
  declaration: string,
  list: readonly EvaluatedArgument[],
  request: RequestContext,
): Promise<number> {
  const depth = depthInside(request);
  const parameters = await request.session.types.resolve(parseParameters(declaration));
  const frame = newCallFrame(depth);
  const passedArguments = new Map<string, EvaluatedArgument>();
  for (const [index, parameter] of parameters.entries()) {
    const name = parameter.name.toLowerCase();
    const found = list.find((each) => each.name?.toLowerCase() === name) ?? unnamed(list[index]);
    if (found === undefined && parameter.default === undefined && parameter.type.table === undefined) {
      throw new SqlError(
        8178,
        `The parameterized query expects the parameter '${parameter.name}', which was not supplied.`,
      );
    }
    if (parameter.type.table !== undefined) {
      await bindTable(parameter, parameter.type.table, found, { ...request, frame });
      continue;
    }
    if (found?.table !== undefined) throw typeClash(found.table, parameter.type);
    const value = found === undefined ? null : await converted(found, parameter.type, request);
    frame.variables.set(name, { type: parameter.type, value });
    if (found !== undefined) passedArguments.set(name, found);
  }
  const succeeded = await inOwnDatabase(undefined, request, () => runBatch(statement, { ...request, frame }));
  for (const [name, found] of passedArguments) {
    const variable = frame.variables.get(name);
    if (!found.isOutput || variable === undefined) continue;
    found.type = variable.type;
    found.value = variable.value;
  }
  return succeeded ? 0 : request.session.lastError;
}

function prepare(declaration: string, statement: string, { session }: RequestContext): number {
  if (session.prepared.size >= preparedMax)
    throw new SqlError(
      8180,
      `The session has reached its limit of ${preparedMax} prepared statements. Unprepare some first.`,
    );
  const handle = session.nextHandle();
  session.prepared.set(handle, { text: statement, declaration });
  return handle;
}

function prepared(handle: Value | undefined, { session }: RequestContext): { text: string; declaration: string } {
  const found = session.prepared.get(Number(handle));
  if (found === undefined)
    throw new SqlError(8179, `Could not find prepared statement with handle ${handle ?? "NULL"}.`);
  return found;
}

function setOutput(found: EvaluatedArgument | undefined, value: Value): void {
  if (found !== undefined) found.value = value;
}

/** Procedure that sends the rows of a catalog query with parameters to the client. */
function catalogProcedure(parameters: readonly string[], query: string): Procedure {
  const declaration = parameters.map((name) => `${name} nvarchar(384) = NULL`).join(", ");
  return (list, request) => runText(query, declaration, list, request);
}

const procedures: Readonly<Record<string, Procedure>> = {
  sp_executesql(list, request) {
    const [, , ...values] = list;
    return runText(text(list, "@stmt", 0), text(list, "@params", 1), values, request);
  },
  async sp_prepare(list, request) {
    const handle = prepare(text(list, "@params", 1), text(list, "@stmt", 2), request);
    setOutput(list[0], String(handle));
    return 0;
  },
  sp_execute([handle, ...values], request) {
    const { text: statement, declaration } = prepared(handle?.value, request);
    return runText(statement, declaration, values, request);
  },
  async sp_prepexec(list, request) {
    const [handle, declaration, statement, ...values] = list;
    const created = prepare(declaration?.value ?? "", statement?.value ?? "", request);
    setOutput(handle, String(created));
    return runText(statement?.value ?? "", declaration?.value ?? "", values, request);
  },
  async sp_unprepare([handle], request) {
    prepared(handle?.value, request);
    request.session.prepared.delete(Number(handle?.value));
    return 0;
  },
  sp_tables: catalogProcedure(
    ["@table_name", "@table_owner", "@table_qualifier", "@table_type"],
    `SELECT TABLE_CATALOG AS TABLE_QUALIFIER, TABLE_SCHEMA AS TABLE_OWNER, TABLE_NAME,
            CASE TABLE_TYPE WHEN 'BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS
       FROM INFORMATION_SCHEMA.TABLES
      WHERE (@table_name IS NULL OR TABLE_NAME LIKE @table_name) AND (@table_owner IS NULL OR TABLE_SCHEMA LIKE @table_owner)
      ORDER BY 4, 1, 2, 3`,
  ),
  sp_columns: catalogProcedure(
    ["@table_name", "@table_owner", "@table_qualifier", "@column_name"],
    `SELECT TABLE_CATALOG AS TABLE_QUALIFIER, TABLE_SCHEMA AS TABLE_OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE AS TYPE_NAME,
            COALESCE(CHARACTER_MAXIMUM_LENGTH, CAST(NUMERIC_PRECISION AS int)) AS PRECISION, NUMERIC_SCALE AS SCALE,
            CASE IS_NULLABLE WHEN 'YES' THEN 1 ELSE 0 END AS NULLABLE, COLUMN_DEFAULT AS COLUMN_DEF, ORDINAL_POSITION, IS_NULLABLE
       FROM INFORMATION_SCHEMA.COLUMNS
      WHERE TABLE_NAME LIKE @table_name AND (@table_owner IS NULL OR TABLE_SCHEMA LIKE @table_owner)
        AND (@column_name IS NULL OR COLUMN_NAME LIKE @column_name)
      ORDER BY 1, 2, 3, ORDINAL_POSITION`,
  ),
  sp_databases: catalogProcedure(
    [],
    `SELECT name AS DATABASE_NAME, CAST(NULL AS int) AS DATABASE_SIZE, CAST(NULL AS varchar(254)) AS REMARKS
       FROM sys.databases ORDER BY 1`,
  ),
  sp_pkeys: catalogProcedure(
    ["@table_name", "@table_owner", "@table_qualifier"],
    `SELECT k.CONSTRAINT_CATALOG AS TABLE_QUALIFIER, k.TABLE_SCHEMA AS TABLE_OWNER, k.TABLE_NAME, k.COLUMN_NAME,
            k.ORDINAL_POSITION AS KEY_SEQ, k.CONSTRAINT_NAME AS PK_NAME
       FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE k
       JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS c ON c.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND c.TABLE_NAME = k.TABLE_NAME
      WHERE c.CONSTRAINT_TYPE = 'PRIMARY KEY' AND k.TABLE_NAME = @table_name
        AND (@table_owner IS NULL OR k.TABLE_SCHEMA = @table_owner)
      ORDER BY 1, 2, 3, 5`,
  ),
};

/** True if the front end has the system procedure of this name. */
export function isSystemProcedure(name: string): boolean {
  return lookUp(procedures, name.toLowerCase()) !== undefined;
}

/** Runs a call of an RPC message; errors and output values are written to the results. */
export async function callRpc(
  name: string,
  list: readonly EvaluatedArgument[],
  isLast: boolean,
  results: Results,
  request: RequestContext,
): Promise<void> {
  let status = 0;
  let isError = false;
  try {
    const path = parsePath(name);
    status = await callProcedure({ path, resultVariable: undefined, arguments: [] }, list, request);
    // The status of a procedure of the system is the number of its error; that of another one is its own.
    isError = status !== 0 && lookUp(procedures, (path.at(-1) ?? "").toLowerCase()) !== undefined;
  } catch (error) {
    if (request.signal.aborted) throw error;
    const failure = sqlErrorOf(error, 1);
    request.session.lastError = failure.number;
    results.error(failure);
    isError = true;
  }
  results.returnStatus(status);
  for (const [ordinal, { name: parameter = "", type, value, isOutput }] of list.entries()) {
    if (isOutput) results.returnValue({ ordinal, name: parameter, type, value });
  }
  results.endProcedure(isError, isLast);
}
