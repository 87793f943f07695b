/** A logical replication slot: the position in the log that a consumer of changes resumes from. */
export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}
