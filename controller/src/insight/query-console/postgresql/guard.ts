import { lookUp } from "@holdfast/common/look-up.ts";
import { deparseSync } from "pgsql-parser";
import { loadModule, parseSync, scanSync } from "libpg-query";
import { redactQuery } from "../../query-stats/redact-query.ts";
import { characterPositions, positionMapOf, type Tree } from "../statement-positions.ts";
import type { StatementVerdict } from "../statement-verdict.ts";
import { explainOptions, locationMembers, readOnlyNodes, refusedWords } from "./grammar.ts";
import { type Names, ScopedNames } from "./scoped-names.ts";

/** Maximum depth of the parse tree, which is walked by recursion. */
const depthMax = 100;
const parenthesesMax = 150;
const auditTextMax = 1_000;

/** Loads the parser once; `checkStatement` needs it. */
export const loadParser: () => Promise<void> = loadModule;

/** A refusal. Its position counts bytes from 1; 0 means none. */
class Refused extends Error {
  readonly position: number;

  constructor(message: string, position = 0) {
    super(message);
    this.position = position;
  }
}

/**
 * Decides whether a statement may run, without side effects. The text that runs is printed from the checked tree, so no
 * text of the caller is sent to the engine. The printed text is parsed again and must give the same tree, or the
 * statement is refused.
 */
export function checkStatement(sql: string): StatementVerdict {
  let positionAt = characterPositions(sql);
  try {
    const named = describedName(sql);
    if (named === undefined) return checkParsed(sql, positionAt);
    // Errors in the generated statement are reported at the table's name.
    const namePosition = positionAt(named.byte);
    positionAt = () => namePosition;
    const verdict = checkParsed(describeQuery(named.name), positionAt);
    return { ...verdict, auditText: `DESCRIBE ${named.name}`.slice(0, auditTextMax) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refused: error.message, position: error.position === 0 ? 0 : positionAt(error.position - 1) };
  }
}

function checkParsed(sql: string, positionAt: (byte: number) => number) {
  const statement = parse(sql);
  const names = new ScopedNames(refuse);
  const [type = ""] = Object.keys(statement);
  if (!["SelectStmt", "VariableShowStmt", "ExplainStmt"].includes(type)) refuseType(type, statement);
  walk(statement, names, 0);
  names.resolveRelations(statement);
  const text = print(statement);
  const tree = reparsed(text);
  if (tree === undefined || !isSameTree(tree, statement))
    refuse("The console cannot print a part of this statement: write it in another way.");
  const { locations, ...found } = names.found;
  const named = new Map([...locations].map(([name, byte]) => [name, positionAt(byte)]));
  const positions = positionMapOf({ text, tree }, statement, positionAt);
  // `withoutConstants` changes the tree, so this is its last use.
  const auditText = (withoutConstants(tree) ?? redactQuery(text)).slice(0, auditTextMax);
  return { sql: text, ...found, auditText, named, positions };
}

/** The tree of the printed text; undefined if the parser refuses it. */
function reparsed(printed: string): Tree | undefined {
  try {
    return parse(printed);
  } catch {
    return undefined;
  }
}

/** Parses a text with exactly one statement. */
function parse(sql: string): Tree {
  // The parser stops at a NUL character.
  const end = sql.indexOf("\0");
  if (end >= 0) refuse("The statement has a NUL character.", Buffer.byteLength(sql.slice(0, end)) + 1);
  const isRead = !mayHaveBadTokens(sql) || checkTokens(sql);
  let statements: readonly { stmt?: unknown }[] | undefined;
  try {
    statements = parseSync(sql).stmts as typeof statements;
  } catch (error) {
    const details = (error as { sqlDetails?: { message?: string; cursorPosition?: number } }).sqlDetails;
    if (details?.message === undefined) throw error;
    // The parser counts characters here, and bytes in all other places.
    const before = Array.from(sql)
      .slice(0, details.cursorPosition ?? 0)
      .join("");
    throw new Refused(details.message, details.cursorPosition === undefined ? 0 : Buffer.byteLength(before) + 1);
  }
  if (!isRead) refuse("The statement cannot be parsed.");
  const [first, ...more] = statements ?? [];
  if (first?.stmt === undefined || more.length > 0) throw new Refused("Exactly one statement is allowed.");
  return first.stmt as Tree;
}

/**
 * True if the text may have a semicolon or nesting that is too deep: the lexer is slower than the parser, so it runs
 * only then.
 */
function mayHaveBadTokens(sql: string): boolean {
  return sql.includes(";") || sql.split(/[([]/, parenthesesMax + 2).length > parenthesesMax + 1;
}

/** Refuses semicolons outside of strings, and deep nesting. False for text that the lexer refuses. */
function checkTokens(sql: string): boolean {
  let tokens: readonly { readonly text: string; readonly start: number }[];
  try {
    ({ tokens } = scanSync(sql));
  } catch {
    // The parser reports the error.
    return false;
  }
  let depth = 0;
  for (const { text, start } of tokens) {
    if (text === ";")
      refuse("A semicolon is not allowed outside of strings and names, not even at the end.", start + 1);
    if (text === "(" || text === "[") depth += 1;
    else if (text === ")" || text === "]") depth -= 1;
    if (depth > parenthesesMax) refuse(`Parentheses are nested more than ${parenthesesMax} deep.`, start + 1);
  }
  return true;
}

/** Refuses every node that is not in the table of nodes that only read. */
function walk(tagged: unknown, names: Names, depth: number): void {
  if (depth > depthMax) refuse(`The statement is nested more than ${depthMax} deep.`);
  if (Array.isArray(tagged)) {
    for (const each of tagged) walk(each, names, depth + 1);
    return;
  }
  if (typeof tagged !== "object" || tagged === null)
    return refuse("The statement has an unexpected value in its parse tree.");
  // DISTINCT without columns is a list with one empty node.
  for (const [type, node] of Object.entries(tagged as Tree)) walkNode(type, node as Tree, names, depth);
}

function walkNode(type: string, node: Tree, names: Names, depth: number): void {
  const members = Object.hasOwn(readOnlyNodes, type) ? readOnlyNodes[type] : undefined;
  if (members === undefined) return refuseType(type, node);
  names.record(type, node);
  if (type === "DefElem" && !explainOptions.has(String(node["defname"])))
    refuse(`The option ${String(node["defname"])} of EXPLAIN is not allowed.`, positionOf(node));
  for (const [name, child] of Object.entries(node)) {
    if (locationMembers.has(name)) continue;
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (member === undefined) refuseType(name, { location: node["location"], child });
    else if (member === "nodes") walk(child, names, depth + 1);
    else if (member !== "value") walkNode(member.one, child as Tree, names, depth + 1);
  }
}

function refuseType(type: string, node?: Tree): never {
  const word = lookUp(refusedWords, type) ?? type;
  return refuse(
    `${word} is not allowed: the console runs only SELECT, SHOW, EXPLAIN and DESCRIBE, and only if they read.`,
    node && positionOf(node),
  );
}

function refuse(message: string, position = 0): never {
  throw new Refused(message, position);
}

/** Position of the node, or else the first position of its children; 0 for none. */
function positionOf(node: unknown): number {
  if (typeof node !== "object" || node === null) return 0;
  const { location } = node as Tree;
  if (typeof location === "number" && location >= 0) return location + 1;
  const child = Object.values(node)
    .map(positionOf)
    .filter((position) => position > 0);
  return child.length === 0 ? 0 : Math.min(...child);
}

function print(statement: Tree): string {
  try {
    return deparseSync({ version: 0, stmts: [{ stmt: statement }] } as Parameters<typeof deparseSync>[0]).trim();
  } catch {
    throw new Refused("The console cannot print a part of this statement: write it in another way.");
  }
}

/** True if the trees are equal apart from locations and the order of members. */
function isSameTree(left: unknown, right: unknown): boolean {
  if (typeof left !== "object" || left === null || typeof right !== "object" || right === null) return left === right;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  let surplus = 0;
  for (const name of Object.keys(right)) if (!locationMembers.has(name)) surplus += 1;
  for (const name of Object.keys(left)) {
    if (locationMembers.has(name)) continue;
    surplus -= 1;
    if (!Object.hasOwn(right, name) || !isSameTree(lookUp(left, name), lookUp(right, name))) return false;
  }
  return surplus === 0;
}

/**
 * The text of the tree with parameters in place of constants, numbered in their order; undefined if it cannot be
 * printed. Changes the tree.
 */
function withoutConstants(tree: Tree): string | undefined {
  const constants: { readonly node: Tree; readonly location: number }[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const constant = (value as Tree)["A_Const"] as Tree | undefined;
    if (constant === undefined) for (const child of Object.values(value)) visit(child);
    else constants.push({ node: value as Tree, location: Number(constant["location"] ?? 0) });
  };
  visit(tree);
  constants.sort((a, b) => a.location - b.location);
  for (const [index, { node, location }] of constants.entries()) {
    delete node["A_Const"];
    node["ParamRef"] = { number: index + 1, location };
  }
  try {
    return print(tree);
  } catch {
    return undefined;
  }
}

/** The name after DESCRIBE, and the byte at which it begins; undefined for other statements. */
function describedName(sql: string): { readonly name: string; readonly byte: number } | undefined {
  const [all, before = "", name] = /^(\s*(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?)(\S[\s\S]*)$/i.exec(sql) ?? [];
  return all === undefined || name === undefined ? undefined : { name, byte: Buffer.byteLength(before) };
}

/** The query of the catalog that replaces DESCRIBE, which PostgreSQL does not have. */
function describeQuery(name: string): string {
  const tree = parse(`SELECT FROM ${name}`);
  const select = tree["SelectStmt"] as Tree | undefined;
  const from = (select?.["fromClause"] as readonly Tree[] | undefined) ?? [];
  const relation = from[0]?.["RangeVar"] as Tree | undefined;
  const isOne = Object.keys(select ?? {}).every((key) => ["fromClause", "limitOption", "op"].includes(key));
  if (
    relation === undefined ||
    from.length !== 1 ||
    !isOne ||
    relation["alias"] !== undefined ||
    relation["catalogname"]
  )
    refuse("DESCRIBE takes the name of one table or view.");
  const { relname, schemaname = String(relname).startsWith("pg_") ? "pg_catalog" : "public" } = relation as Record<
    string,
    string
  >;
  const quoted = [schemaname, relname].map((part) => `"${String(part).replaceAll('"', '""')}"`).join(".");
  return `SELECT a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
    pg_get_expr(d.adbin, d.adrelid) AS default
    FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = '${quoted.replaceAll("'", "''")}'::regclass AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum`;
}
