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
}
