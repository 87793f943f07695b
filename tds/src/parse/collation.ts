import { SqlError } from "../run/sql-error.ts";
import { findCollation } from "../types/collation.ts";
import { isCharacter, type TsqlType } from "../types/tsql-type.ts";
import { refuse } from "./features.ts";
import type { TokenStream } from "./token-stream.ts";

/** The name after COLLATE; undefined for one of the names of the service's collation. Error 448 for another one. */
export function parseCollation(stream: TokenStream): string | undefined {
  const { line } = stream.current;
  const written = stream.identifier();
  if (["database_default", "catalog_default"].includes(written.toLowerCase())) return undefined;
  const found = findCollation(written);
  if (found === undefined) throw refuse("other collations", line, written);
  return found.name;
}

/** The type of a column with the collation that follows. */
export function collatedType(stream: TokenStream, type: TsqlType): TsqlType {
  const { line } = stream.current;
  const collation = parseCollation(stream);
  if (type.written !== undefined)
    throw new SqlError(452, "COLLATE clause cannot be used on user-defined data types.", { line });
  if (!isCharacter(type) || type.name === "xml")
    throw new SqlError(447, `Expression type ${type.name} is invalid for COLLATE clause.`, { line });
  return collation === undefined ? type : { ...type, collation };
}
