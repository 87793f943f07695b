/** A logical replication slot: the position in the log that a consumer of changes resumes from. */
export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** A slot that the engine invalidated: its consumer cannot resume. */
export interface LostSlot extends LogicalSlot {
  /** The engine's word for the reason, such as `wal_removed`. */
  readonly lostReason: string;
}

export interface LogicalSlots {
  /** Slots that consumers can use. */
  readonly usable: readonly LogicalSlot[];
  readonly lost: readonly LostSlot[];
}
