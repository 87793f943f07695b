import type { Tree } from "./console-grammar.ts";

/** Sees each node of a statement while it is judged. */
export interface Names {
  look(type: string, node: Tree): void;
}

/** What is named with a schema other than the engine's own. */
export interface QualifiedName {
  readonly kind: "function" | "operator" | "type";
  readonly schema: string;
  readonly name: string;
}

interface FoundNames {
  readonly functions: readonly string[];
  readonly types: readonly string[];
  readonly relations: readonly string[];
  readonly qualified: readonly QualifiedName[];
  /** The byte at which each of them is named first. */
  readonly locations: ReadonlyMap<string, number>;
}

type Refuse = (message: string, position?: number) => never;

/**
 * What a statement names. Functions, operators and types without a schema are the engine's own, or of an extension that the
 * agent knows; with one they are of such an extension. Tables may be in any schema; without one they are in `public`.
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

  look(type: string, node: Tree): void {
    if (type === "FuncCall") this.#addFunctions(this.#known(node["funcname"], "function", node), node);
    else if (type === "TypeName") for (const name of this.#known(node["names"], "type", node)) this.#types.add(name);
    else if (type === "CollateClause") this.#own(textsOf(node["collname"]), "collation", node);
    else if (type === "A_Expr") this.#known(node["name"], "operator", node);
    else if (type === "SubLink" && node["operName"] !== undefined) this.#known(node["operName"], "operator", node);
    else if (type === "SortBy" && node["useOp"] !== undefined) this.#known(node["useOp"], "operator", node);
    // A function of one argument can be written as if it were a column of it.
    else if (type === "ColumnRef") this.#addFunctions(textsOf(node["fields"]).slice(1), node);
    else if (type === "A_Indirection") this.#addFunctions(textsOf(node["indirection"]), node);
  }

  /** Gives every table that names no schema the one that it is in, but for those that a WITH makes. */
  resolveRelations(statement: Tree): void {
    this.#visit(statement, new Set());
  }

  /** The name alone, unless it has a schema that is not the engine's own: then it is kept as such. */
  #known(list: unknown, kind: QualifiedName["kind"], node: Tree): string[] {
    const parts = textsOf(list);
    const [schema = "", name = ""] = parts;
    if (parts.length !== 2 || schema === "pg_catalog") return [this.#own(parts, kind, node)];
    this.#qualified.set(`${kind} ${quoted(schema)}.${quoted(name)}`, { kind, schema, name });
    this.#locate(parts.join("."), node);
    return [];
  }

  #own(parts: readonly string[], what: string, node: Tree): string {
    const name = parts.at(-1) ?? "";
    if (parts.length === 1 || (parts.length === 2 && parts[0] === "pg_catalog")) return name;
    const location = node["location"];
    const position = typeof location === "number" ? location + 1 : 0;
    return this.#refuse(`The ${what} ${parts.join(".")} is not one of the engine's own.`, position);
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
      for (const [type, held] of Object.entries(value as Tree)) {
        if (type === "RangeVar") this.#resolve(held as Tree, visible);
        else if (isSelect(type)) this.#select(held as Tree, visible);
        else this.#visit(held, visible);
      }
  }

  /** What a WITH makes is there for the queries after it, for itself when it is recursive, and for the statement below. */
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

  #resolve(relation: Tree, made: ReadonlySet<string>): void {
    const { schemaname, relname } = relation as { schemaname?: string; relname: string };
    if (schemaname === undefined && made.has(relname)) return;
    const schema = schemaname ?? (relname.startsWith("pg_") ? "pg_catalog" : "public");
    relation["schemaname"] = schema;
    const name = `${quoted(schema)}.${quoted(relname)}`;
    this.#relations.add(name);
    this.#locate(name, relation);
  }
}

/** Both branches of a UNION are statements of their own, without a type before them. */
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
