import type { Tree } from "../statement-positions.ts";
import type { QualifiedName } from "../statement-verdict.ts";

/** Records the names of a statement; `record` is called for every node while the statement is checked. */
export interface Names {
  record(type: string, node: Tree): void;
}

interface FoundNames {
  readonly functions: readonly string[];
  readonly types: readonly string[];
  readonly relations: readonly string[];
  readonly qualified: readonly QualifiedName[];
  /** The byte of the first use of each name, by name. */
  readonly locations: ReadonlyMap<string, number>;
}

type Refuse = (message: string, position?: number) => never;

/**
 * Collects the names in a statement. Functions, operators and types without a schema belong to the engine, or to an
 * extension in the agent's list; with a schema they must belong to such an extension. Tables may be in any schema;
 * without one they are in `public`.
 */
export class ScopedNames implements Names {
  readonly #refuse: Refuse;
  readonly #functions = new Set<string>();
  readonly #types = new Set<string>();
  readonly #qualified = new Map<string, QualifiedName>();
  readonly #relations = new Set<string>();
  readonly #locations = new Map<string, number>();

  constructor(refuse: Refuse) {
    this.#refuse = refuse;
  }

  get found(): FoundNames {
    return {
      functions: [...this.#functions],
      types: [...this.#types],
      relations: [...this.#relations],
      qualified: [...this.#qualified.values()],
      locations: this.#locations,
    };
  }

  record(type: string, node: Tree): void {
    if (type === "FuncCall") this.#addFunctions(this.#scoped(node["funcname"], "function", node), node);
    else if (type === "TypeName") for (const name of this.#scoped(node["names"], "type", node)) this.#types.add(name);
    else if (type === "CollateClause") this.#unqualified(textsOf(node["collname"]), "collation", node);
    else if (type === "A_Expr") this.#scoped(node["name"], "operator", node);
    else if (type === "SubLink" && node["operName"] !== undefined) this.#scoped(node["operName"], "operator", node);
    else if (type === "SortBy" && node["useOp"] !== undefined) this.#scoped(node["useOp"], "operator", node);
    // `column.name` can be a call of a function of one argument.
    else if (type === "ColumnRef") this.#addFunctions(textsOf(node["fields"]).slice(1), node);
    else if (type === "A_Indirection") this.#addFunctions(textsOf(node["indirection"]), node);
  }

  /** Adds the schema to every table without one, except for names that a WITH defines. */
  resolveRelations(statement: Tree): void {
    this.#visit(statement, new Set());
  }

  /**
   * The name without its schema; empty for a name with a schema other than the engine's, which is recorded as
   * qualified.
   */
  #scoped(list: unknown, kind: QualifiedName["kind"], node: Tree): string[] {
    const parts = textsOf(list);
    const [schema = "", name = ""] = parts;
    if (parts.length !== 2 || schema === "pg_catalog") return [this.#unqualified(parts, kind, node)];
    this.#qualified.set(`${kind} ${quoted(schema)}.${quoted(name)}`, { kind, schema, name });
    this.#locate(parts.join("."), node);
    return [];
  }

  #unqualified(parts: readonly string[], kind: string, node: Tree): string {
    const name = parts.at(-1) ?? "";
    if (parts.length === 1 || (parts.length === 2 && parts[0] === "pg_catalog")) return name;
    const location = node["location"];
    const position = typeof location === "number" ? location + 1 : 0;
    return this.#refuse(`The ${kind} ${parts.join(".")} does not belong to the engine.`, position);
  }

  #addFunctions(names: readonly string[], node: Tree): void {
    for (const name of names) {
      this.#functions.add(name);
      this.#locate(name, node);
    }
  }

  #locate(name: string, { location }: Tree): void {
    if (typeof location === "number" && !this.#locations.has(name)) this.#locations.set(name, location);
  }

  #visit(value: unknown, visible: ReadonlySet<string>): void {
    if (Array.isArray(value)) for (const each of value) this.#visit(each, visible);
    else if (typeof value === "object" && value !== null)
      for (const [type, child] of Object.entries(value as Tree)) {
        if (type === "RangeVar") this.#resolve(child as Tree, visible);
        else if (isSelect(type)) this.#select(child as Tree, visible);
        else this.#visit(child, visible);
      }
  }

  /** A CTE is visible to the CTEs after it, to itself when the WITH is recursive, and to the statement. */
  #select(select: Tree, outer: ReadonlySet<string>): void {
    const { withClause, ...rest } = select;
    const visible = new Set(outer);
    const { ctes = [], recursive } = (withClause ?? {}) as { ctes?: readonly Tree[]; recursive?: boolean };
    const bodies = ctes.map((each) => each["CommonTableExpr"] as Tree);
    if (recursive === true) for (const { ctename } of bodies) visible.add(String(ctename));
    for (const body of bodies) {
      this.#visit(body["ctequery"], new Set(visible));
      visible.add(String(body["ctename"]));
    }
    this.#visit(rest, visible);
  }

  #resolve(relation: Tree, ctes: ReadonlySet<string>): void {
    const { schemaname, relname } = relation as { schemaname?: string; relname: string };
    if (schemaname === undefined && ctes.has(relname)) return;
    const schema = schemaname ?? (relname.startsWith("pg_") ? "pg_catalog" : "public");
    relation["schemaname"] = schema;
    const name = `${quoted(schema)}.${quoted(relname)}`;
    this.#relations.add(name);
    this.#locate(name, relation);
  }
}

/** True for a SELECT: a statement, or a branch of a UNION, which the tree stores under `larg` and `rarg`. */
function isSelect(type: string): boolean {
  return type === "SelectStmt" || type === "larg" || type === "rarg";
}

function textsOf(list: unknown): string[] {
  if (!Array.isArray(list)) return [];
  return (list as readonly Tree[]).flatMap((each) => {
    const text = (each["String"] as Tree | undefined)?.["sval"];
    return typeof text === "string" ? [text] : [];
  });
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
