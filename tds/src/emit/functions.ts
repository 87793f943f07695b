import { lookUp } from "@holdfast/common/look-up.ts";
import type { Scope } from "../bind/scope.ts";
import type { Call, OrderItem, Window } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { SqlError } from "../run/sql-error.ts";
import { isCharacter, type TsqlType } from "../types/tsql-type.ts";
import { aggregates } from "./aggregates.ts";
import type { EmitContext, Typed } from "./context.ts";
import { collatedLike, implicitly } from "./conversions.ts";
import { dateFunctions } from "./date-functions.ts";
import { emitComparison, emitExpression, emitOrder, emitPredicate, typeOfAll } from "./expressions.ts";
import { plainFunctions } from "./plain-functions.ts";
import { emitScalarCall } from "./user-functions.ts";

const int: TsqlType = { name: "int" };

const refused: Readonly<Record<string, true>> = { CONTAINS: true, FREETEXT: true };

/** Functions of `emitConditional`. */
const conditionals = ["ISNULL", "COALESCE", "NULLIF", "IIF", "CHOOSE"];
/** Functions of the session, without arguments. */
export const sessionFunctions: readonly string[] = [
  "APP_NAME",
  "ERROR_LINE",
  "ERROR_MESSAGE",
  "ERROR_NUMBER",
  "ERROR_PROCEDURE",
  "ERROR_SEVERITY",
  "ERROR_STATE",
  "HOST_NAME",
  "ROWCOUNT_BIG",
  "SCOPE_IDENTITY",
  "XACT_STATE",
];

/** True if the front end has the built-in function; full-text predicates are refused as their feature. */
export function isBuiltInFunction(written: string): boolean {
  const name = written.toUpperCase();
  const tables = [refused, aggregates, plainFunctions, dateFunctions] as const;
  return (
    conditionals.includes(name) ||
    sessionFunctions.includes(name) ||
    tables.some((table: Readonly<Record<string, unknown>>) => lookUp(table, name) !== undefined)
  );
}

export function emitCall(call: Call, scope: Scope, context: EmitContext): Typed {
  const name = (call.path.at(-1) ?? "").toUpperCase();
  if (call.path.length > 1) return emitScalarCall(call, scope, context);
  if (lookUp(refused, name) === true) throw refuse("full-text search", call.line);
  const aggregate = lookUp(aggregates, name);
  if (aggregate !== undefined) return emitAggregate(call, name, scope, context);
  const list = call.arguments.map((argument) => emitExpression(argument, scope, context));
  const special = emitConditional(name, call, list, scope, context);
  if (special !== undefined) return special;
  const session = list.length === 0 ? context.session.value(name.toLowerCase()) : undefined;
  if (session !== undefined) return context.parameter(name, session);
  const known = lookUp(plainFunctions, name) ?? lookUp(dateFunctions, name);
  if (known === undefined) {
    throw new SqlError(195, `'${call.path.join(".")}' is not a recognized built-in function name.`, {
      severity: 15,
      line: call.line,
      feature: "built-in functions",
    });
  }
  if (list.length < known.minimum || list.length > known.maximum) {
    const message = `The function ${name.toLowerCase()} takes ${known.minimum} to ${known.maximum} arguments.`;
    throw new SqlError(174, message, { severity: 15, line: call.line });
  }
  const { sql, type: own, isJson } = known.emit(list, context);
  const isCollated = isCharacter(own) && list.some((value) => value.isCollated);
  const text = isCharacter(own) ? list.find((value) => value.type.collation !== undefined) : undefined;
  const type = text === undefined ? own : collatedLike(own, text.type);
  return { sql, type, isCollated, ...(isJson === true && { isJson }) };
}

/** Functions whose result has the type of their arguments. */
function emitConditional(
  name: string,
  call: Call,
  list: readonly Typed[],
  scope: Scope,
  context: EmitContext,
): Typed | undefined {
  const [first, second] = list;
  if (first === undefined || second === undefined) return undefined;
  const isCollated = list.some((value) => value.isCollated);
  switch (name) {
    case "ISNULL": {
      const type = first.isNull === true ? second.type : first.type;
      return { sql: `COALESCE(${first.sql}, ${implicitly(second, type).sql})`, type, isCollated };
    }
    case "COALESCE": {
      const type = typeOfAll(list);
      return { sql: `COALESCE(${list.map((value) => implicitly(value, type).sql).join(", ")})`, type, isCollated };
    }
    case "NULLIF":
      return {
        sql: `(CASE WHEN ${emitComparison("=", first, second, context)} THEN NULL ELSE ${first.sql} END)`,
        type: first.type,
        isCollated,
      };
    case "IIF": {
      if (call.condition === undefined) return undefined;
      const type = typeOfAll(list);
      const condition = emitPredicate(call.condition, scope, context);
      const [then, otherwise] = [implicitly(first, type).sql, implicitly(second, type).sql];
      return { sql: `(CASE WHEN ${condition} THEN ${then} ELSE ${otherwise} END)`, type, isCollated };
    }
    case "CHOOSE": {
      const values = list.slice(1);
      const type = typeOfAll(values);
      const whens = values.map((value, index) => `WHEN ${index + 1} THEN ${implicitly(value, type).sql}`).join(" ");
      return { sql: `(CASE ${implicitly(first, int).sql} ${whens} END)`, type, isCollated };
    }
    default:
      return undefined;
  }
}

function emitAggregate(call: Call, name: string, scope: Scope, context: EmitContext): Typed {
  const known = lookUp(aggregates, name);
  if (known === undefined) throw refuse("built-in functions", call.line, name);
  const isStar = call.arguments[0]?.kind === "star";
  const list = isStar ? [] : call.arguments.map((argument) => emitExpression(argument, scope, context));
  const {
    call: text,
    type,
    wrap,
  } = known(list, call.isDistinct ? "DISTINCT " : "", call.withinGroup && order(call.withinGroup, scope, context));
  const over = call.over === undefined ? "" : ` OVER (${windowText(call.over, scope, context)})`;
  const sql = wrap === undefined ? `${text}${over}` : wrap(`${text}${over}`);
  const [value] = list;
  if (!isCharacter(type)) return { sql, type, isCollated: false };
  return {
    sql,
    type: value === undefined ? type : collatedLike(type, value.type),
    isCollated: value?.isCollated === true,
  };
}

function order(items: readonly OrderItem[], scope: Scope, context: EmitContext): string {
  return ` ORDER BY ${items.map((item) => emitOrder(item, scope, context)).join(", ")}`;
}

function windowText(window: Window, scope: Scope, context: EmitContext): string {
  const partition = window.partitionBy.map((item) => emitExpression(item, scope, context).sql).join(", ");
  const parts = [
    partition === "" ? "" : `PARTITION BY ${partition}`,
    window.orderBy.length === 0 ? "" : order(window.orderBy, scope, context).trim(),
    window.frame ?? "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}
