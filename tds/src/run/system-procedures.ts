import { lookUp } from "@holdfast/common/look-up.ts";
import type { Execute } from "../parse/ast.ts";
import { parseParameters, parsePath } from "../parse/execute-statements.ts";
import type { Value } from "../types/tsql-type.ts";
import { qualified, quoteName } from "../bind/object-name.ts";
import { escapeLiteral } from "./backend.ts";
import { catalogProcedures } from "./catalog-procedures.ts";
import { homeOf, inOwnDatabase } from "./databases.ts";
import { runAll } from "./definitions.ts";
import { sqlErrorOf } from "./errors.ts";
import { converted } from "./evaluation.ts";
import { newCallFrame } from "./call-frame.ts";
import { depthInside, runBatch } from "./interpreter.ts";
import { odbcProcedures } from "./odbc-procedures.ts";
import { parameterRows, procedureColumnsQuery } from "./procedure-columns.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";
import type { Results } from "./results.ts";
import { rename } from "./rename.ts";
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
  const procedure = lookUp(procedures, name) ?? catalogProcedure(name);
  if (procedure === undefined) return callUserProcedure(call.path, list, request);
  const home = await homeOf(call.path, request.session);
  return inOwnDatabase(home, request, () => procedure(list, request));
}

/** The procedure of the catalog; undefined for an unknown name. */
function catalogProcedure(name: string): Procedure | undefined {
  const found = lookUp(catalogProcedures, name) ?? lookUp(odbcProcedures, name);
  if (found === undefined) return undefined;
  const declaration = found.parameters.map((parameter) => `${parameter} nvarchar(776) = NULL`).join(", ");
  return (list, request) => runText(found.query, declaration, list, request);
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
  const run = () => runBatch(statement, { ...request, frame });
  const succeeded = await inOwnDatabase(undefined, request, () => request.session.withOwnOptions(run));
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

/** Stores MS_Description of a table, view or column as the comment of PostgreSQL; undefined removes it. */
async function describe(
  list: readonly EvaluatedArgument[],
  value: string | undefined,
  request: RequestContext,
): Promise<void> {
  const [schema, table, column] = [3, 5, 7].map((position, level) => text(list, `@level${level}name`, position));
  const name = text(list, "@name", 0);
  if (name.toLowerCase() !== "ms_description" || !schema || !table) {
    const message = `Property '${name}' cannot be added: only MS_Description of tables and columns is supported.`;
    throw new SqlError(15_600, message, { severity: 15 });
  }
  const { session, frame } = request;
  const target = session.context(frame).objectName([schema, table], 0);
  await session.transaction.withStatementSavepoint(async () => {
    await session.catalog.load([target]);
    const found = session.catalog.find(target);
    const own = found?.columns.find((each) => each.name.toLowerCase() === column?.toLowerCase());
    if (found === undefined || (column && own === undefined))
      throw new SqlError(15_135, `Object is invalid: '${[schema, table, column].join(".")}'.`);
    const kind = found.isView === true ? "VIEW" : "TABLE";
    const object =
      own === undefined ? `${kind} ${qualified(found)}` : `COLUMN ${qualified(found)}.${quoteName(own.name)}`;
    await runAll([`COMMENT ON ${object} IS ${value === undefined ? "NULL" : escapeLiteral(value)}`], request);
  });
}

/** Parameters of procedures and functions, which are in their texts alone. */
const procedureColumns: Procedure = async (list, request) => {
  const [name, owner] = ["@procedure_name", "@procedure_owner"].map(
    (each, index) => argument(list, each, index)?.value,
  );
  const rows = await parameterRows(name ?? null, owner ?? null, request);
  const filters = [argument(list, "@column_name", 3), argument(list, "@odbcver", 4)].filter(
    (each) => each !== undefined,
  );
  const named = filters.map((each, index) => ({ ...each, name: ["@column_name", "@ODBCVer"][index] ?? "" }));
  const declaration = "@column_name nvarchar(776) = NULL, @ODBCVer nvarchar(9) = NULL";
  return runText(procedureColumnsQuery(rows), declaration, named, request);
};

const procedures: Readonly<Record<string, Procedure>> = {
  sp_sproc_columns: procedureColumns,
  sp_sproc_columns_90: procedureColumns,
  sp_sproc_columns_100: procedureColumns,
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
  async sp_rename(list, request) {
    const kind = text(list, "@objtype", 2).toUpperCase();
    await rename(text(list, "@objname", 0), text(list, "@newname", 1), kind, request);
    return 0;
  },
  async sp_addextendedproperty(list, request) {
    await describe(list, text(list, "@value", 1), request);
    return 0;
  },
  async sp_updateextendedproperty(list, request) {
    await describe(list, text(list, "@value", 1), request);
    return 0;
  },
  async sp_dropextendedproperty(list, request) {
    // It has no @value, so that positions after the name are one less.
    await describe([...list.slice(0, 1), ...list.slice(0, 1), ...list.slice(1)], undefined, request);
    return 0;
  },
};

/** True if the front end has the system procedure of this name. */
export function isSystemProcedure(name: string): boolean {
  return [procedures, catalogProcedures, odbcProcedures].some((table: object) =>
    Object.hasOwn(table, name.toLowerCase()),
  );
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
    isError = status !== 0 && isSystemProcedure(path.at(-1) ?? "");
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
