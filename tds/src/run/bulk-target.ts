import type { ColumnSource } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";

/** Table of the bulk load that INSERT BULK announced. */
export interface BulkTarget {
  readonly table: TableDefinition;
  readonly columns: readonly ColumnSource[];
  readonly keepsNulls: boolean;
}
