import { qualified, quoteName } from "../bind/object-name.ts";
import { Scope } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type { Predicate, TableSource, Target } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";
import type { EmitContext } from "./context.ts";
import { emitPredicate } from "./expressions.ts";
import { emitSource } from "./queries.ts";

/** FROM of an UPDATE or DELETE, divided into the target, the other sources, and the conditions that join them. */
interface SeparatedTarget {
  readonly table: TableDefinition;
  readonly alias: string;
  readonly sources: readonly TableSource[];
  readonly conditions: readonly Predicate[];
  /** The target in `sources`, if its outer join keeps it there. */
  readonly joined?: TableSource;
}

/** The target of an UPDATE or DELETE, with the texts of its other sources. */
export interface ChangedTarget {
  readonly table: TableDefinition;
  readonly alias: string;
  /** The target and the other sources. */
  readonly scope: Scope;
  readonly from: readonly string[];
  readonly conditions: readonly string[];
}

const joinedAlias = ":joined";

export function targetTable(target: Target, context: EmitContext): TableDefinition {
  return target.kind === "table" ? context.table(target.path, target.line) : context.changedVariable(target.name);
}

/** Emits FROM of an UPDATE or DELETE, in which PostgreSQL does not accept the target. */
export function emitTarget(target: Target, from: readonly TableSource[], context: EmitContext): ChangedTarget {
  const { table, alias, sources, conditions, joined } = separateTarget(target, from, context);
  const scope = new Scope();
  if (joined === undefined) {
    scope.add({ alias, object: alias, columns: table.columns });
    const texts = sources.map((source) => emitSource(source, scope, context));
    return {
      table,
      alias,
      scope,
      from: texts,
      conditions: conditions.map((each) => emitPredicate(each, scope, context)),
    };
  }
  const inner = new Scope();
  context.joinedTarget = { source: joined, alias: joinedAlias };
  const texts = sources.map((source) => emitSource(source, inner, context));
  const joins = conditions.map((each) => emitPredicate(each, inner, context));
  context.joinedTarget = undefined;
  for (const source of inner.sources)
    scope.add(source.text === undefined ? source : { alias, object: alias, columns: table.columns });
  const keys = table.primaryKey.length > 0 ? table.primaryKey.map(quoteName) : ["ctid"];
  const same = keys.map((key) => `${quoteName(alias)}.${key} = ${quoteName(joinedAlias)}.${key}`);
  return { table, alias, scope, from: texts, conditions: [...same, ...joins] };
}

/** The source in FROM that is the target: by its name there, or else the only source of the same table. */
function findTarget(target: Target, from: readonly TableSource[], context: EmitContext): TableSource | undefined {
  const written = target.kind === "table" ? target.path : [target.name];
  const name = (written.at(-1) ?? "").toLowerCase();
  const tables = from.flatMap(tablesIn);
  const named = tables.find((source) => {
    if (source.kind === "tableVariable") return (source.alias ?? source.name).toLowerCase() === name;
    if (written.length === 1 && source.alias !== undefined) return source.alias.toLowerCase() === name;
    return source.alias === undefined && (source.path.at(-1) ?? "").toLowerCase() === name;
  });
  if (named !== undefined) return named;
  const same = tables.filter((source) => {
    if (source.kind === "tableVariable") return target.kind !== "table" && source.name.toLowerCase() === name;
    if (target.kind !== "table" || (source.path.at(-1) ?? "").toLowerCase() !== name) return false;
    const [left, right] = [source.path, target.path].map((path) => context.table(path, target.line));
    return left !== undefined && right !== undefined && qualified(left) === qualified(right);
  });
  if (same.length > 1) throw new SqlError(8154, `The table '${written.join(".")}' is ambiguous.`);
  return same[0];
}

type TableOrVariable = Extract<TableSource, { kind: "table" | "tableVariable" }>;

function tablesIn(source: TableSource): TableOrVariable[] {
  if (source.kind === "join") return [...tablesIn(source.left), ...tablesIn(source.right)];
  return source.kind === "table" || source.kind === "tableVariable" ? [source] : [];
}

/** Only rows of the target change, so an outer join that adds rows without one is an inner join. */
function separateTarget(target: Target, from: readonly TableSource[], context: EmitContext): SeparatedTarget {
  const found = findTarget(target, from, context);
  const conditions: Predicate[] = [];
  let joined: TableSource | undefined;
  const contains = (source: TableSource): boolean =>
    source === found || (source.kind === "join" && (contains(source.left) || contains(source.right)));
  const flatten = (source: TableSource): TableSource[] => {
    if (source === found) return [];
    if (source.kind !== "join" || (source.type !== "INNER" && source.type !== "CROSS" && !contains(source)))
      return [source];
    const isInner =
      source.type === "INNER" ||
      source.type === "CROSS" ||
      (source.type === "LEFT" && contains(source.right)) ||
      (source.type === "RIGHT" && contains(source.left));
    if (!isInner) {
      joined = found;
      return [source];
    }
    if (source.on !== undefined) conditions.push(source.on);
    return [...flatten(source.left), ...flatten(source.right)];
  };
  const sources = from.flatMap(flatten);
  const isJoined = joined !== undefined && { joined };
  if (found?.kind === "table") {
    const table = context.table(found.path, found.line);
    const alias = (found.alias ?? found.path.at(-1) ?? "").toLowerCase();
    return { table, alias, sources, conditions, ...isJoined };
  }
  const own = target.kind === "table" ? (target.path.at(-1) ?? "") : target.name;
  const alias = (found?.kind === "tableVariable" ? (found.alias ?? found.name) : own).toLowerCase();
  return { table: targetTable(target, context), alias, sources, conditions, ...isJoined };
}
