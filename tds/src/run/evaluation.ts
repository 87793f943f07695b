import { Scope } from "../bind/scope.ts";
import { castTo } from "../emit/conversions.ts";
import { emitExpression, emitPredicate } from "../emit/expressions.ts";
import type { Expression, Predicate } from "../parse/ast.ts";
import { isCharacter, isInteger, type TsqlType, type Value } from "../types/tsql-type.ts";
import { newCallFrame } from "./call-frame.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";

/** Evaluates an expression as a value of the type, in PostgreSQL unless it is a literal that needs no conversion. */
export async function evaluate(expression: Expression, request: RequestContext, type: TsqlType): Promise<Value> {
  if (expression.kind === "literal") {
    const { value, type: literalType } = expression;
    if (value === null) return null;
    if (isInteger(literalType) && type.name === "int") return value;
    const max = typeof type.length === "number" ? type.length : Number.POSITIVE_INFINITY;
    if (isCharacter(literalType) && (type.name === "nvarchar" || type.name === "varchar") && value.length <= max)
      return value;
  }
  const { session, frame } = request;
  await session.loadTables(expression, frame);
  const context = session.context(frame);
  const typed = castTo(emitExpression(expression, new Scope(), context), type);
  const rows = await session.transaction.withStatementSavepoint(() =>
    session.backend.query(`SELECT ${typed.sql}`, context.values),
  );
  return rows[0]?.[0] ?? null;
}

export async function evaluatePredicate(written: Predicate, { session, frame }: RequestContext): Promise<boolean> {
  const predicate = await session.types.resolve(written);
  await session.loadTables(predicate, frame);
  const context = session.context(frame);
  const sql = emitPredicate(predicate, new Scope(), context);
  const rows = await session.transaction.withStatementSavepoint(() =>
    session.backend.query(`SELECT ${sql}`, context.values),
  );
  return rows[0]?.[0] === "t";
}

/** Value converted to the declared type, by PostgreSQL if the types' families differ. */
export async function converted(
  { type, value }: EvaluatedArgument,
  declared: TsqlType,
  request: RequestContext,
): Promise<Value> {
  if (value === null || type.name === declared.name) return value;
  if (isCharacter(type) && isCharacter(declared))
    return typeof declared.length === "number" ? value.slice(0, declared.length) : value;
  const context = request.session.context(newCallFrame());
  const typed = castTo(context.parameter("value", { type, value }), declared);
  const rows = await request.session.transaction.withStatementSavepoint(() =>
    request.session.backend.query(`SELECT ${typed.sql}`, context.values),
  );
  return rows[0]?.[0] ?? null;
}
