import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { LayoutMode } from "../bind/databases.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { hasRunningValues } from "../emit/dml.ts";
import { isBuiltInFunction, sessionFunctions } from "../emit/functions.ts";
import { builtInRowsets } from "../emit/queries.ts";
import type { Call, Delete, Execute, Merge, ModuleDefinition, Path, StatementBody, Update } from "../parse/ast.ts";
import type { Feature } from "../parse/features.ts";
import type { assessBatch } from "../parse/batch.ts";
import { tokenize } from "../parse/lexer.ts";
import { refusedProcedure } from "../run/calls.ts";
import { isSystemProcedure } from "../run/system-procedures.ts";

/** Use of a feature. `detail` replaces the advice of the feature. */
export interface FeatureUse {
  readonly feature: Feature;
  readonly line: number;
  readonly detail?: string;
}

/** Features by the kinds of statements and of their parts. */
// biome-ignore format: a table
const byKind: Readonly<Record<string, Feature>> = {
  select:           "SELECT",
  insert:           "INSERT, UPDATE, DELETE",
  update:           "INSERT, UPDATE, DELETE",
  delete:           "INSERT, UPDATE, DELETE",
  merge:            "MERGE",
  createTable:      "tables, indexes, views, sequences",
  alterTable:       "tables, indexes, views, sequences",
  createIndex:      "tables, indexes, views, sequences",
  createView:       "tables, indexes, views, sequences",
  createSchema:     "tables, indexes, views, sequences",
  createSequence:   "tables, indexes, views, sequences",
  createType:       "user-defined types",
  drop:             "tables, indexes, views, sequences",
  dropIndex:        "tables, indexes, views, sequences",
  truncate:         "tables, indexes, views, sequences",
  grant:            "GRANT and REVOKE",
  procedure:        "procedures",
  function:         "functions",
  trigger:          "triggers",
  declare:          "variables and control of flow",
  set:              "variables and control of flow",
  if:               "variables and control of flow",
  while:            "variables and control of flow",
  declareTable:     "table variables",
  try:              "TRY...CATCH",
  throw:            "TRY...CATCH",
  begin:            "transactions",
  commit:           "transactions",
  rollback:         "transactions",
  save:             "transactions",
  setOption:        "SET options",
  isolation:        "SET options",
  executeText:      "dynamic SQL",
  declareCursor:    "cursors",
  insertBulk:       "bulk load",
  collate:          "collations",
  createDatabase:   "CREATE DATABASE",
  dropDatabase:     "CREATE DATABASE",
};

/** Features that are unsupported in the layout single-db alone. */
const ofOneDatabase: readonly Feature[] = ["other databases", "CREATE DATABASE"];

const databases = ["", defaultDatabase, "master", "tempdb", "msdb", "model"];

/** Kinds of statements that a function cannot have, in addition to changes of tables. */
const notInFunctions: readonly StatementBody["kind"][] = [
  "try",
  "declareTable",
  "execute",
  "executeText",
  "throw",
  "raiserror",
  "print",
  "setOption",
  "begin",
  "commit",
  "rollback",
  "save",
  "waitfor",
  "declareCursor",
  "openCursor",
  "fetch",
  "closeCursor",
  "deallocateCursor",
];
/** Kinds of statements that a trigger cannot have. */
const notInTriggers: readonly StatementBody["kind"][] = [
  "try",
  "declareTable",
  "execute",
  "executeText",
  "begin",
  "commit",
  "save",
  "waitfor",
  "declareCursor",
  "openCursor",
  "fetch",
  "closeCursor",
  "deallocateCursor",
];

interface Node {
  readonly value: object;
  /** Line of the nearest part with a line. */
  readonly line: number;
  readonly module: ModuleDefinition["kind"] | undefined;
}

/** The features that a batch uses, in its syntax tree and its tokens. */
export function featuresIn(
  text: string,
  { line: first, ...parsed }: ReturnType<typeof assessBatch>,
  layoutMode: LayoutMode,
): FeatureUse[] {
  const uses: FeatureUse[] = [...hintsIn(text)];
  // A stack instead of a recursion, since chains of operators make deep trees.
  const stack: Node[] = [{ value: parsed, line: first, module: undefined }];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const { value } = node;
    const part: Part = { ...value };
    const line = typeof part["line"] === "number" && part["line"] > 0 ? part["line"] : node.line;
    const kind = typeof part["kind"] === "string" ? part["kind"] : "";
    // Sources of rows and expressions have kinds that modules have too.
    const isModule = Array.isArray(part["statements"]) && ["procedure", "function", "trigger"].includes(kind);
    const module = isModule ? (kind as ModuleDefinition["kind"]) : node.module;
    for (const use of usesOf(part, kind, isModule))
      if (layoutMode === "single-db" || !ofOneDatabase.includes(use.feature)) uses.push({ line, ...use });
    if (isSessionValue(part, kind) && (module === "function" || module === "trigger"))
      uses.push({ line, feature: "values of the session in modules" });
    if (node.module !== undefined && typeof part["body"] === "object" && part["body"] !== null) {
      const refused = refusedInModule(part["body"] as StatementBody, node.module);
      if (refused !== undefined) uses.push({ line, feature: "statements in functions and triggers", detail: refused });
    }
    for (const child of Object.values(value).reverse())
      if (typeof child === "object" && child !== null) stack.push({ value: child, line, module });
  }
  return uses;
}

type Use = Omit<FeatureUse, "line">;
/** Part of a syntax tree: its kind determines the types of the other members. */
type Part = Partial<Record<string, unknown>>;

function usesOf(part: Part, kind: string, isModule: boolean): Use[] {
  const uses: Use[] = [];
  const known = kind === "function" && !isModule ? undefined : lookUp(byKind, kind);
  if (known !== undefined) uses.push({ feature: known });
  const { top, output, path, call, format } = part;
  if (isObject(format)) uses.push({ feature: format["kind"] === "json" ? "FOR JSON" : "FOR XML" });
  // The actions of MERGE have no FROM.
  if ((kind === "update" || kind === "delete") && Array.isArray(part["from"]))
    uses.push(...changeFeatures(part as Part & (Update | Delete)));
  if (isModule && kind === "function" && Array.isArray(part["parameters"])) {
    const isTable = (parameter: unknown) => isObject(parameter) && parameter["isReadOnly"] === true;
    if (part["parameters"].some(isTable)) uses.push({ feature: "table-valued parameters of functions" });
  }
  if (isModule && kind === "function" && isObject(part["returns"])) {
    const { columns } = part["returns"];
    const isComputed = (column: unknown) => isObject(column) && column["computed"] !== undefined;
    if (Array.isArray(columns) && columns.some(isComputed))
      uses.push({ feature: "computed columns of table variables" });
  }
  if (isObject(top)) uses.push({ feature: top["isPercent"] === true ? "TOP ... PERCENT" : "TOP" });
  if (isObject(output)) uses.push({ feature: outputFeature(kind, part) });
  if (Array.isArray(part["with"]) && part["with"].length > 0) uses.push({ feature: "common table expressions" });
  if (isObject(part["over"])) uses.push({ feature: "window functions" });
  if (kind === "join" && typeof part["type"] === "string" && part["type"].endsWith("APPLY"))
    uses.push({ feature: "APPLY" });
  if (isObject(part["identity"])) uses.push({ feature: "IDENTITY" });
  if (isObject(part["computed"])) uses.push({ feature: "computed columns" });
  if (isObject(part["type"])) uses.push(...typeFeatures(part["type"]));
  if (kind === "use" && typeof part["database"] === "string") uses.push(...databaseFeatures(part["database"]));
  if (Array.isArray(path) && kind !== "column" && kind !== "star") uses.push(...pathFeatures(path as Path));
  if (isObject(call) && (kind === "call" || kind === "function")) uses.push(...callFeatures(call as Part & Call, kind));
  if (isObject(call) && kind === "execute") uses.push(...executeFeatures(call as Part & Execute));
  return uses;
}

/** Changes with a join that the front end refuses. */
function changeFeatures(change: Update | Delete): Use[] {
  const { from, top, output } = change;
  const uses: Use[] = [];
  const hasJoin = from.length > 1 || from[0]?.kind === "join";
  if (top !== undefined && hasJoin) uses.push({ feature: "TOP with a join in a change" });
  if (change.kind === "update" && hasRunningValues(change)) uses.push({ feature: "running values in UPDATE" });
  const usesDeleted = output !== undefined && JSON.stringify(output.items).toLowerCase().includes('"path":["deleted"');
  if (change.kind === "update" && hasJoin && usesDeleted) uses.push({ feature: "OUTPUT deleted without a key" });
  return uses;
}

/** True for a value of the session other than those that functions and triggers have. */
function isSessionValue(part: Part, kind: string): boolean {
  if (kind === "variable" && typeof part["name"] === "string")
    return part["name"].startsWith("@@") && !["@@rowcount", "@@error"].includes(part["name"].toLowerCase());
  if (kind !== "call" || !isObject(part["call"])) return false;
  const { path } = part["call"] as Part & Call;
  return path.length === 1 && sessionFunctions.includes((path[0] ?? "").toUpperCase());
}

function outputFeature(kind: string, { output, clauses }: Part): Feature {
  if (kind !== "merge" || !isObject(output) || !Array.isArray(clauses)) return "OUTPUT";
  const updates = (clauses as Merge["clauses"]).some(({ action }) => action.kind === "update");
  const usesDeleted = JSON.stringify(output["items"]).toLowerCase().includes('"path":["deleted"');
  return updates && usesDeleted ? "OUTPUT deleted of MERGE" : "OUTPUT";
}

function typeFeatures(type: Part): Use[] {
  const { name, scale, written, collation } = type;
  if (collation !== undefined) return [{ feature: "collations" }];
  if (written !== undefined) return [{ feature: "user-defined types" }];
  if (name === "rowversion" || name === "xml" || name === "sql_variant") return [{ feature: name }];
  const hasFraction = name === "time" || name === "datetime2" || name === "datetimeoffset";
  return hasFraction && scale === 7 ? [{ feature: "seven digits of seconds" }] : [];
}

function databaseFeatures(name: string): Use[] {
  return databases.includes(name.toLowerCase()) ? [] : [{ feature: "other databases" }];
}

function pathFeatures(path: Path): Use[] {
  const name = path.at(-1) ?? "";
  if (name.startsWith("##")) return [{ feature: "global temporary tables" }];
  if (name.startsWith("#")) return [{ feature: "temporary tables" }];
  if (path.length === 4) return [{ feature: "linked servers" }];
  const isCatalog = ["sys", "information_schema"].includes((path.at(-2) ?? "").toLowerCase());
  return [...databaseFeatures(path.at(-3) ?? ""), ...(isCatalog ? [{ feature: "catalog views" } as const] : [])];
}

function callFeatures({ path }: Call, kind: "call" | "function"): Use[] {
  const [name = ""] = path;
  if (path.length > 1) return [];
  const isKnown = isBuiltInFunction(name) || (kind === "function" && builtInRowsets.includes(name.toUpperCase()));
  if (isKnown) return [];
  // A table function of a user may be called by its name alone.
  if (kind === "function" && name.toUpperCase() !== "OPENJSON") return [];
  return [{ feature: "built-in functions", detail: `The function ${name.toUpperCase()} is not supported.` }];
}

function executeFeatures({ path }: Execute): Use[] {
  const name = (path.at(-1) ?? "").toLowerCase();
  if (path.length === 4) return [{ feature: "linked servers" }];
  const refused = refusedProcedure(name);
  if (refused !== undefined) return [{ feature: refused }];
  if (name === "sp_executesql") return [{ feature: "dynamic SQL" }];
  if (!/^(?:sp|xp)_/.test(name) || isSystemProcedure(name)) return databaseFeatures(path.at(-3) ?? "");
  return [{ feature: "system procedures", detail: `The procedure ${name} is not supported unless it is your own.` }];
}

/** Message for a statement that the module cannot have. */
function refusedInModule(body: StatementBody, module: ModuleDefinition["kind"]): string | undefined {
  const { kind } = body;
  if (module === "procedure") return undefined;
  const refused = module === "trigger" ? notInTriggers : notInFunctions;
  const words = kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase();
  if (refused.includes(kind)) return `A ${module} cannot contain ${words}.`;
  const isChange = kind === "insert" || kind === "update" || kind === "delete" || kind === "merge";
  if (isChange && module === "function" && body.target.kind !== "tableVariable")
    return "A function cannot change tables.";
  if (isChange && body.output !== undefined) return `A ${module} cannot contain OUTPUT.`;
  return undefined;
}

const hints = [
  "NOLOCK",
  "READPAST",
  "READUNCOMMITTED",
  "ROWLOCK",
  "TABLOCK",
  "TABLOCKX",
  "UPDLOCK",
  "HOLDLOCK",
  "XLOCK",
];

/** Hints and storage options, which the parser skips. */
function hintsIn(text: string): FeatureUse[] {
  const tokens = tokenize(text);
  return tokens.flatMap(({ kind, keyword, line }, index): FeatureUse[] => {
    if (kind !== "word") return [];
    const before = tokens[index - 1]?.keyword;
    const after = tokens[index + 1]?.keyword;
    if (keyword === "OPTION" && after === "(") return [{ feature: "hints", line }];
    if (hints.includes(keyword) && (before === "(" || before === ",")) return [{ feature: "hints", line }];
    const isStorage = ["FILLFACTOR", "DATA_COMPRESSION", "PAD_INDEX", "TEXTIMAGE_ON"].includes(keyword);
    return isStorage ? [{ feature: "storage options", line }] : [];
  });
}

function isObject(value: unknown): value is Part {
  return typeof value === "object" && value !== null;
}
