import type { ObjectName } from "../bind/object-name.ts";
import type { CreateType, Path } from "../parse/ast.ts";
import { parseTableType } from "../parse/ddl-statements.ts";
import { SqlError } from "../run/sql-error.ts";
import { typeOfDomain, typeOfOid } from "../types/backend-type.ts";
import type { TsqlType, UserTypeName } from "../types/tsql-type.ts";

/*
 * How types are stored: an alias type of T-SQL is a domain of PostgreSQL, and a table type is a composite type. Both
 * have a comment: NOT NULL of an alias is the default of its columns, which a domain cannot have, and a table type has
 * its text, with the constraints and defaults of its columns. The text is parsed, not taken: a role that creates types
 * can comment them.
 */
const head = "-- T-SQL: ";

/** Comment of the type in PostgreSQL; undefined for none. */
export function userTypeComment(definition: CreateType["definition"]): string | undefined {
  if (definition.kind === "table") return head + JSON.stringify({ kind: "TT", text: definition.text });
  return definition.isNullable ? undefined : head + JSON.stringify({ kind: "alias", isNullable: false });
}

/** Columns and constraints of a table type, with the types of columns resolved. */
type TableType = Pick<Extract<CreateType["definition"], { kind: "table" }>, "columns" | "constraints">;

export interface UserTypes {
  /** The part of a syntax tree with user-defined types in place of their names; error 2715 for an unknown one. */
  resolve<T extends object>(node: T): Promise<T>;
  /** Definition of the table type that `resolve` found. */
  table(name: UserTypeName): Promise<TableType>;
  clear(): void;
}

const typeQuery = `
SELECT n.nspname, t.typname, t.typtype, CASE WHEN b.typtype = 'd' AND bn.nspname = 'holdfast_tsql' THEN b.typname END,
       CASE WHEN b.typtype = 'd' THEN b.typbasetype ELSE t.typbasetype END,
       CASE WHEN b.typtype = 'd' THEN b.typtypmod ELSE t.typtypmod END, pg_catalog.obj_description(t.oid, 'pg_type')
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
  LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
  LEFT JOIN pg_catalog.pg_namespace bn ON bn.oid = b.typnamespace
 WHERE n.nspname = $1 AND lower(t.typname) = $2 AND (t.typtype = 'd' OR c.relkind = 'c')
   AND pg_catalog.has_type_privilege(t.oid, 'USAGE')
 ORDER BY t.typname = $2 DESC LIMIT 1`;

type Query = (sql: string, values: readonly string[]) => Promise<(string | null)[][]>;

interface UserType {
  readonly type: TsqlType;
  /** Text of a table type; undefined for an alias. */
  readonly text: string | undefined;
}

/** Names of types in parts of syntax trees, which are cached with their texts. */
const namesIn = new WeakMap<object, readonly Path[]>();

/** The user-defined types of one session; `clear` is called after DDL of any session. */
export function createUserTypes(query: Query, nameOf: (path: Path) => ObjectName): UserTypes {
  const cached = new Map<string, UserType>();
  const find = async (name: UserTypeName): Promise<UserType | undefined> => {
    const key = `${name.schema}.${name.name}`;
    const present = cached.get(key);
    if (present !== undefined) return present;
    const [row] = await query(typeQuery, [name.schema, name.name]);
    const found = row && userTypeOf(row);
    if (found !== undefined) cached.set(key, found);
    return found;
  };
  const types: UserTypes = {
    async resolve(node) {
      const paths = namesIn.get(node) ?? namesOf(node);
      namesIn.set(node, paths);
      if (paths.length === 0) return node;
      const found = new Map<string, TsqlType>();
      for (const path of paths) {
        const type = (await find(nameOf(path)))?.type;
        if (type === undefined) throw new SqlError(2715, `Cannot find data type ${path.join(".")}.`);
        found.set(JSON.stringify(path), type);
      }
      return replaced(node, found);
    },
    async table(name) {
      const definition = parseTableType((await find(name))?.text ?? "");
      if (definition === undefined) throw new SqlError(2715, `Cannot find data type ${name.schema}.${name.name}.`);
      return types.resolve(definition);
    },
    clear: () => cached.clear(),
  };
  return types;
}

function userTypeOf([schema, name, kind, domain, oid, modifier, comment]: (string | null)[]): UserType | undefined {
  const stored = storedType(comment ?? null);
  const userType = { schema: schema ?? "", name: name ?? "" };
  if (kind !== "d") {
    // A composite type of PostgreSQL is no table type.
    if (stored.text === undefined) return undefined;
    return { type: { name: "sql_variant", table: userType }, text: stored.text };
  }
  const base = (domain == null ? undefined : typeOfDomain(domain)) ?? typeOfOid(Number(oid), Number(modifier));
  return { type: { ...base, alias: { ...userType, isNullable: stored.isNullable } }, text: undefined };
}

function storedType(comment: string | null): { readonly isNullable: boolean; readonly text: string | undefined } {
  const none = { isNullable: true, text: undefined };
  if (comment?.startsWith(head) !== true) return none;
  try {
    const { isNullable, text } = JSON.parse(comment.slice(head.length)) as { isNullable?: unknown; text?: unknown };
    return { isNullable: isNullable !== false, text: typeof text === "string" ? text : undefined };
  } catch {
    return none;
  }
}

function isName(node: object): node is TsqlType & { readonly written: Path } {
  return "written" in node && Array.isArray(node.written);
}

function namesOf(node: object, found: Path[] = []): Path[] {
  if (isName(node)) found.push(node.written);
  else for (const value of Object.values(node)) if (typeof value === "object" && value !== null) namesOf(value, found);
  return found;
}

function replaced<T>(node: T, types: ReadonlyMap<string, TsqlType>): T {
  if (typeof node !== "object" || node === null) return node;
  if (isName(node)) return (types.get(JSON.stringify(node.written)) ?? node) as T;
  if (Array.isArray(node)) return node.map((each) => replaced<unknown>(each, types)) as T;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, replaced<unknown>(value, types)])) as T;
}
