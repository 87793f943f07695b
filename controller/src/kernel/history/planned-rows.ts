/** Rows of a system that are inserted by the statement that inserts their events. */
export interface PlannedRows {
  /** Plain objects whose members are columns of `jsonb_to_recordset`. */
  readonly rows: readonly object[];
  /**
   * SQL that inserts the rows from a JSON parameter, joined with `added (id, occurred_at)`, the events that are new. It
   * returns the `id` of each row.
   */
  insertSql(parameter: string): string;
}
