import type { LogPositions } from "./log-positions.ts";

/** Facts of one engine that controllers use, beside the catalog's data. Pure. */
export interface EngineProfile {
  /** The form of a password that the engine stores; the password itself is never sent to a machine. */
  verifierOf(password: string): string;
  /** Databases of a new service. */
  readonly databases: readonly string[];
  /** The database that a connection string names. */
  readonly connectionDatabase: string;
  /** Connection URI of the default user, without the password. */
  uri(host: string, port: number): string;
  /** Absent for an engine without replicas. */
  readonly replicas?: {
    /** Comparison of the positions that members report. */
    readonly positions: LogPositions;
    /** They authenticate to the primary with a secret, beside their certificates. */
    readonly haveSecret?: true;
    /** Users do not replicate: each member has its own. */
    readonly haveOwnUsers?: true;
    /** Commits can wait for them. */
    readonly isSynchronous?: true;
    /**
     * Version of the primary lease protocol: replicas confirm the primary's lease, and the primary takes writes only
     * while it has one. An agent with at least this version supports it for this engine.
     */
    readonly primaryLeaseVersion?: number;
    /** Integer parameters whose value must be at least the primary's. */
    readonly minimumFromPrimary?: readonly string[];
  };
  /** URI with all nodes, for clients that find the primary among them; absent if clients cannot. */
  allNodesUri?(hosts: readonly string[], port: number): string;
}
