import type { PositionMap } from "./statement-positions.ts";

/**
 * The verdict on a statement: the text that may run, or the reason why it is refused. Positions count characters of the
 * caller's text from 1; 0 means none.
 */
export type StatementVerdict =
  | {
      readonly sql: string;
      /** Functions without a schema or with `pg_catalog`; types are collected in the same way. */
      readonly functions: readonly string[];
      readonly types: readonly string[];
      readonly relations: readonly string[];
      readonly qualified: readonly QualifiedName[];
      /** Text for the audit log: constants are replaced by parameters, and it is truncated. */
      readonly auditText: string;
      /** Maps positions in `sql` to positions in the caller's text. */
      readonly positions: PositionMap;
      /** Positions of functions and relations in the caller's text, by name. */
      readonly named: ReadonlyMap<string, number>;
    }
  | { readonly refused: string; readonly position: number };

/** A name with a schema other than the engine's. */
export interface QualifiedName {
  readonly kind: "function" | "operator" | "type";
  readonly schema: string;
  readonly name: string;
}
