import type { Execute } from "../parse/ast.ts";
import { refuse, type RefusedFeature } from "../parse/features.ts";
import type { TsqlType } from "../types/tsql-type.ts";
import { sqlErrorOf } from "./errors.ts";
import { evaluate } from "./evaluation.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";

const nvarcharMax: TsqlType = { name: "nvarchar", length: "max" };

/** Names of procedures of the system that belong to a feature that is refused. */
const refusedProcedures: readonly (readonly [pattern: RegExp, feature: RefusedFeature])[] = [
  [/^sp_(?:add|update|delete|start|stop)_job/, "agent jobs"],
  [/^sp_cdc_/, "change data capture"],
  [/^sp_(?:add|drop)linked/, "linked servers"],
];

/** The feature of a procedure, by its name in lower case; undefined unless it is refused. */
export function refusedProcedure(name: string): RefusedFeature | undefined {
  return refusedProcedures.find(([pattern]) => pattern.test(name))?.[1];
}

/** Runs EXECUTE of a procedure; variables get its OUTPUT values and its status. */
export async function execute(call: Execute, line: number, request: RequestContext): Promise<void> {
  const name = (call.path.at(-1) ?? "").toLowerCase();
  if (call.path.length === 4) throw refuse("linked servers", line);
  const refused = refusedProcedure(name);
  if (refused !== undefined) throw refuse(refused, line);
  const list: EvaluatedArgument[] = [];
  for (const argument of call.arguments) {
    const { value: expression } = argument;
    const table =
      expression.kind === "variable" ? request.frame.tableVariables.get(expression.name.toLowerCase()) : undefined;
    if (table !== undefined) {
      list.push({
        name: argument.name,
        type: { name: "sql_variant" },
        value: null,
        isOutput: argument.isOutput,
        table,
      });
      continue;
    }
    const type =
      expression.kind === "variable"
        ? (request.frame.variables.get(expression.name.toLowerCase())?.type ?? nvarcharMax)
        : expression.kind === "literal"
          ? expression.type
          : nvarcharMax;
    const value = expression.kind === "default" ? null : await evaluate(expression, request, type);
    const isDefault = expression.kind === "default";
    list.push({ name: argument.name, type, value, isOutput: argument.isOutput, isDefault });
  }
  let status: number;
  try {
    status = await request.call(call, list, request);
  } catch (error) {
    throw sqlErrorOf(error, line);
  }
  for (const [index, argument] of call.arguments.entries()) {
    const evaluated = list[index];
    if (!argument.isOutput || argument.value.kind !== "variable" || evaluated === undefined) continue;
    const variable = request.frame.variables.get(argument.value.name.toLowerCase());
    if (variable !== undefined) variable.value = evaluated.value;
  }
  if (call.resultVariable !== undefined) {
    const variable = request.frame.variables.get(call.resultVariable.toLowerCase());
    if (variable !== undefined) variable.value = String(status);
  }
}
