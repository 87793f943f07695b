/** What the API answers about operations. Times are RFC 3339 texts in UTC. */

/** The last three are final. */
export type OperationStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

/** What went wrong, for a program and for a person. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Something that takes time; `waitFor` waits for its end. */
export interface Operation {
  readonly id: string;
  readonly service_id: string;
  /**
   * Of the service: "create", "start", "stop", "restart", "configure", "maintenance" or "delete". Of what is in its engine:
   * "create_user", "reset_password", "delete_user", "create_database" or "delete_database".
   */
  readonly type: string;
  readonly status: OperationStatus;
  /** What is being done; null before it begins. */
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  /** When it counts as stuck; progress moves it on. */
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: Fault | null;
  /** Of maintenance that changes the image: the data as they were before; null until that is known. */
  readonly snapshot: DataSnapshot | null;
}

/** What became of a snapshot of the data. */
export interface DataSnapshot {
  /** "restored": the data were put back to it. */
  readonly state: "taken" | "none" | "restored";
  /** Why there is none, or why the data were not put back though the image was. */
  readonly reason: string | null;
}
