import { SqlError } from "../run/sql-error.ts";
import type { Collation } from "../types/collation.ts";
import { isCharacter } from "../types/tsql-type.ts";
import type { EmitContext, Typed } from "./context.ts";

/** A text with a COLLATE clause, which names the service's collation if it has no name. */
export function emitCollate(operand: Typed, name: string | undefined, context: EmitContext): Typed {
  if (operand.isNull === true) return operand;
  if (!isCharacter(operand.type) || operand.type.name === "xml")
    throw new SqlError(447, `Expression type ${operand.type.name} is invalid for COLLATE clause.`);
  const { collation: _, ...type } = operand.type;
  const collated = name === undefined || name === context.session.collation.name ? type : { ...type, collation: name };
  const sql = `(${operand.sql} ${context.collate(collated)})`;
  return { ...operand, sql, type: collated, isCollated: true, isExplicit: true };
}

/** The collation in which texts compare. Error 468 if two of them have different ones. */
export function textCollation(operands: readonly Typed[], context: EmitContext): Collation {
  const explicit = operands.filter(({ isExplicit }) => isExplicit === true);
  const deciding =
    explicit.length > 0 ? explicit : operands.filter(({ isCollated, type }) => isCollated && isCharacter(type));
  const [first, second] = new Set(deciding.map(({ type }) => context.collationOf(type)));
  if (first === undefined) return context.session.collation;
  if (second === undefined) return first;
  const message = `Cannot resolve the collation conflict between "${first.name}" and "${second.name}"; add COLLATE.`;
  throw new SqlError(468, message);
}

/**
 * The last argument of functions that search in texts: what the collation distinguishes. Without it they ignore the
 * case and nothing else.
 */
export function kindOf(operands: readonly (Typed | undefined)[], context: EmitContext): string[] {
  const texts = operands.filter((operand) => operand !== undefined);
  const { sensitivity } = textCollation(texts, context);
  return sensitivity === "ci_as" ? [] : [`'${sensitivity}'`];
}
