import { objectName } from "../bind/object-name.ts";
import type { Parameter, Path } from "../parse/ast.ts";
import type { Value } from "../types/tsql-type.ts";
import { homeOf, inOwnDatabase } from "./databases.ts";
import { converted, evaluate } from "./evaluation.ts";
import { newCallFrame } from "./call-frame.ts";
import { depthInside, dropTableVariables, runProcedure } from "./interpreter.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";
import { SqlError } from "./sql-error.ts";
import { bindTable, typeClash } from "./table-parameters.ts";

/**
 * Calls a procedure that a user created; its statements have the privileges of the caller. Returns its status. Error
 * 2812 for an unknown name.
 */
export async function callUserProcedure(
  path: Path,
  list: readonly EvaluatedArgument[],
  request: RequestContext,
): Promise<number> {
  const { session } = request;
  const name = objectName(path, session, 0);
  const procedure = await session.catalog.procedure(name);
  if (procedure === undefined) {
    const isSystem = /^(?:sp|xp)_/i.test(name.name);
    const feature = isSystem ? { feature: "system procedures" } : {};
    throw new SqlError(2812, `Could not find stored procedure '${name.written}'.`, feature);
  }
  if (!procedure.isExecutable) {
    const message = `The EXECUTE permission was denied on the object '${name.written}'.`;
    throw new SqlError(229, message, { severity: 14 });
  }
  const { parameters, statements } = procedure.definition;
  const title = path.at(-1) ?? "";
  const passed = passedArguments(title, parameters, list);
  const frame = newCallFrame(depthInside(request), title);
  const inner = { ...request, frame };
  try {
    for (const parameter of parameters) await bind(parameter, passed.get(parameter), title, inner);
  } catch (error) {
    await dropTableVariables(inner);
    throw error;
  }
  const home = await homeOf(path, session);
  const { options, scopeIdentity } = session;
  session.options = { ...options };
  session.scopeIdentity = null;
  let status: number;
  try {
    status = await inOwnDatabase(home, request, () => runProcedure(statements, inner));
  } finally {
    // Options that a procedure sets last until its end.
    session.options = options;
    session.scopeIdentity = scopeIdentity;
  }
  for (const [parameter, argument] of passed) {
    const variable = frame.variables.get(parameter.name.toLowerCase());
    if (argument.isOutput && variable !== undefined)
      argument.value = await converted({ ...argument, ...variable }, argument.type, request);
  }
  return status;
}

async function bind(
  parameter: Parameter,
  argument: EvaluatedArgument | undefined,
  title: string,
  request: RequestContext,
): Promise<void> {
  if (parameter.type.table !== undefined) {
    await bindTable(parameter, parameter.type.table, argument, request);
    return;
  }
  if (argument?.table !== undefined) throw typeClash(argument.table, parameter.type);
  const value = await valueOf(parameter, argument, title, request);
  request.frame.variables.set(parameter.name.toLowerCase(), { type: parameter.type, value });
}

async function valueOf(
  { name, type, default: standard }: Parameter,
  argument: EvaluatedArgument | undefined,
  title: string,
  request: RequestContext,
): Promise<Value> {
  if (argument !== undefined) return converted(argument, type, request);
  if (standard !== undefined) return evaluate(standard, request, type);
  throw new SqlError(201, `Procedure or function '${title}' expects parameter '${name}', which was not supplied.`);
}

/** Arguments by their parameters, without those that are DEFAULT. */
function passedArguments(
  title: string,
  parameters: readonly Parameter[],
  list: readonly EvaluatedArgument[],
): Map<Parameter, EvaluatedArgument> {
  const passed = new Map<Parameter, EvaluatedArgument>();
  for (const [index, argument] of list.entries()) {
    const parameter = parameterOf(title, parameters, argument.name ?? "", index);
    if (passed.has(parameter)) {
      throw new SqlError(8143, `Parameter '${parameter.name}' was supplied multiple times.`);
    }
    if (argument.isOutput && !parameter.isOutput) {
      const message = `The formal parameter "${parameter.name}" was not declared as an OUTPUT parameter.`;
      throw new SqlError(8162, message);
    }
    if (argument.isDefault !== true) passed.set(parameter, argument);
  }
  return passed;
}

function parameterOf(title: string, parameters: readonly Parameter[], name: string, index: number): Parameter {
  if (name === "") {
    const found = parameters[index];
    if (found !== undefined) return found;
    throw new SqlError(8144, `Procedure or function ${title} has too many arguments specified.`);
  }
  const found = parameters.find((each) => each.name.toLowerCase() === name.toLowerCase());
  if (found === undefined) throw new SqlError(8145, `${name} is not a parameter for procedure ${title}.`);
  return found;
}
