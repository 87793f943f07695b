import { lookUp } from "@holdfast/common/look-up.ts";
import { deparseSync } from "pgsql-parser";
import { loadModule, parseSync, scanSync } from "libpg-query";
import { explainOptions, places, readingNodes, refusedWords, type Tree } from "./console-grammar.ts";
import { type Names, type QualifiedName, ScopedNames } from "./scoped-names.ts";
import { shownQuery } from "../query-stats/shown-query.ts";
import { characterPlaces, type Places, placesOf } from "./statement-places.ts";

/** A statement that may run, or why it may not. Positions are characters of what was asked, from 1 on; 0 for none. */
export type Judgement =
  | {
      readonly sql: string;
      /** Those without a schema, or the engine's own; so are types. */
      readonly functions: readonly string[];
      readonly types: readonly string[];
      readonly relations: readonly string[];
      readonly qualified: readonly QualifiedName[];
      /** For people: constants are left out, and it is cut. */
      readonly shown: string;
      /** From positions in `sql` to those in what was asked. */
      readonly places: Places;
      /** Where functions and relations are named. */
      readonly named: ReadonlyMap<string, number>;
    }
  | { readonly refused: string; readonly position: number };

/** Deeper than this nobody writes by hand, and the tree is walked by recursion. */
const depthMax = 100;
const parenthesesMax = 150;
const shownMax = 1_000;

/** Loads the parser once; `judge` needs it. */
export const loadParser: () => Promise<void> = loadModule;

/** Its position counts bytes from 1 on; 0 for none. */
class Refused extends Error {
  readonly position: number;

  constructor(message: string, position = 0) {
    super(message);
    this.position = position;
  }
}

/**
 * Pure, but for the parser: may this statement run, and as what? The text that runs is printed from the tree that was judged,
 * so nothing of the text that came reaches the engine. Parsed again it is the same tree, else it is refused.
 */
export function judge(sql: string): Judgement {
  let placeOf = characterPlaces(sql);
  try {
    const named = describedName(sql);
    if (named === undefined) return judged(sql, placeOf);
    // Any error in the generated statement is reported at the place of the table's name.
    const namePlace = placeOf(named.byte);
    placeOf = () => namePlace;
    const judgement = judged(description(named.name), placeOf);
    return { ...judgement, shown: `DESCRIBE ${named.name}`.slice(0, shownMax) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refused: error.message, position: error.position === 0 ? 0 : placeOf(error.position - 1) };
  }
}

function judged(sql: string, placeOf: (byte: number) => number) {
  const statement = parse(sql);
  const names = new ScopedNames(refuse);
  const [type = ""] = Object.keys(statement);
  if (!["SelectStmt", "VariableShowStmt", "ExplainStmt"].includes(type)) refuseType(type, statement);
  walk(statement, names, 0);
  names.resolveRelations(statement);
  const text = print(statement);
  const tree = parsedAgain(text);
  if (tree === undefined || !isSameTree(tree, statement))
    refuse("The console cannot print a part of this statement: write it in another way.");
  const { locations, ...found } = names.found;
  const named = new Map([...locations].map(([name, byte]) => [name, placeOf(byte)]));
  const places = placesOf({ text, tree }, statement, placeOf);
  // The last look at the tree: it loses its constants.
  const shown = (withoutConstants(tree) ?? shownQuery(text)).slice(0, shownMax);
  return { sql: text, ...found, shown, named, places };
}

/** The tree of what was printed; undefined where the parser does not take it. */
function parsedAgain(printed: string): Tree | undefined {
  try {
    return parse(printed);
  } catch {
    return undefined;
  }
}

/** The one statement of a text. */
function parse(sql: string): Tree {
  // The parser would read no further.
  const end = sql.indexOf("\0");
  if (end >= 0) refuse("The statement holds a character that no text has.", Buffer.byteLength(sql.slice(0, end)) + 1);
  const isRead = !mayHaveBadTokens(sql) || checkTokens(sql);
  let statements: readonly { stmt?: unknown }[] | undefined;
  try {
    statements = parseSync(sql).stmts as typeof statements;
  } catch (error) {
    const details = (error as { sqlDetails?: { message?: string; cursorPosition?: number } }).sqlDetails;
    if (details?.message === undefined) throw error;
    // The parser counts characters here, and bytes everywhere else.
    const before = Array.from(sql)
      .slice(0, details.cursorPosition ?? 0)
      .join("");
    throw new Refused(details.message, details.cursorPosition === undefined ? 0 : Buffer.byteLength(before) + 1);
  }
  if (!isRead) refuse("The statement cannot be read.");
  const [first, ...more] = statements ?? [];
  if (first?.stmt === undefined || more.length > 0) throw new Refused("One statement is run at a time.");
  return first.stmt as Tree;
}

/** Could there be a semicolon, or nesting that is too deep? The lexer takes longer than the parser. */
function mayHaveBadTokens(sql: string): boolean {
  return sql.includes(";") || sql.split(/[([]/, parenthesesMax + 2).length > parenthesesMax + 1;
}

/** Refuses semicolons outside of strings, and nesting that would be costly to follow. False for what the lexer cannot read. */
function checkTokens(sql: string): boolean {
  let tokens: readonly { readonly text: string; readonly start: number }[];
  try {
    ({ tokens } = scanSync(sql));
  } catch {
    // The parser has words for it.
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

/** Refuses whatever the table of reading nodes does not have. */
function walk(tagged: unknown, names: Names, depth: number): void {
  if (depth > depthMax) refuse(`The statement is nested more than ${depthMax} deep.`);
  if (Array.isArray(tagged)) {
    for (const each of tagged) walk(each, names, depth + 1);
    return;
  }
  if (typeof tagged !== "object" || tagged === null)
    return refuse("The statement holds something that is no part of one.");
  // DISTINCT without columns is a list with an empty node.
  for (const [type, node] of Object.entries(tagged as Tree)) walkNode(type, node as Tree, names, depth);
}

function walkNode(type: string, node: Tree, names: Names, depth: number): void {
  const members = Object.hasOwn(readingNodes, type) ? readingNodes[type] : undefined;
  if (members === undefined) return refuseType(type, node);
  names.look(type, node);
  if (type === "DefElem" && !explainOptions.has(String(node["defname"])))
    refuse(`The option ${String(node["defname"])} of EXPLAIN is not allowed.`, positionOf(node));
  for (const [name, held] of Object.entries(node)) {
    if (places.has(name)) continue;
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (member === undefined) refuseType(name, { location: node["location"], held });
    else if (member === "nodes") walk(held, names, depth + 1);
    else if (member !== "value") walkNode(member.one, held as Tree, names, depth + 1);
  }
}

function refuseType(type: string, node?: Tree): never {
  const word = lookUp(refusedWords, type) ?? type;
  return refuse(`${word} is not allowed: only SELECT, SHOW, EXPLAIN and DESCRIBE that read.`, node && positionOf(node));
}

function refuse(message: string, position = 0): never {
  throw new Refused(message, position);
}

/** Its own place, or else the first of what it holds. */
function positionOf(node: unknown): number {
  if (typeof node !== "object" || node === null) return 0;
  const { location } = node as Tree;
  if (typeof location === "number" && location >= 0) return location + 1;
  const held = Object.values(node)
    .map(positionOf)
    .filter((position) => position > 0);
  return held.length === 0 ? 0 : Math.min(...held);
}

function print(statement: Tree): string {
  try {
    return deparseSync({ version: 0, stmts: [{ stmt: statement }] } as Parameters<typeof deparseSync>[0]).trim();
  } catch {
    throw new Refused("The console cannot print a part of this statement: write it in another way.");
  }
}

/** Are they the same but for where things stood, and in what order members came? */
function isSameTree(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  let surplus = 0;
  for (const name of Object.keys(other)) if (!places.has(name)) surplus += 1;
  for (const name of Object.keys(one)) {
    if (places.has(name)) continue;
    surplus -= 1;
    if (!Object.hasOwn(other, name) || !isSameTree((one as Tree)[name], (other as Tree)[name])) return false;
  }
  return surplus === 0;
}

/** Changes the tree: its text with parameters in the place of constants, in their order; undefined where that has no text. */
function withoutConstants(tree: Tree): string | undefined {
  const constants: { readonly node: Tree; readonly location: number }[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const constant = (value as Tree)["A_Const"] as Tree | undefined;
    if (constant === undefined) for (const held of Object.values(value)) visit(held);
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

/** What DESCRIBE is asked of, and the byte at which its name begins. */
function describedName(sql: string): { readonly name: string; readonly byte: number } | undefined {
  const [all, before = "", name] = /^(\s*(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?)(\S[\s\S]*)$/i.exec(sql) ?? [];
  return all === undefined || name === undefined ? undefined : { name, byte: Buffer.byteLength(before) };
}

/** DESCRIBE is no statement of PostgreSQL: it becomes a query of the catalog. */
function description(name: string): string {
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
