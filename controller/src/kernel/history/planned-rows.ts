/** Rows of a system that come into the history in the statement that brings their events. */
export interface PlannedRows {
  /** Plain objects; their members are the columns of `jsonb_to_recordset`. */
  readonly rows: readonly object[];
  /**
   * SQL that inserts the rows out of a JSON parameter, joined with `added (id, occurred_at)`, the events that are new;
   * it returns the `id` of each row.
   */
  insertSql(parameter: string): string;
}
