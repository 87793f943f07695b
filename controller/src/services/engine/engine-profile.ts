import type { LogPositions } from "./log-positions.ts";

/** Target of a connection URI. */
export interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  /** Absent in URIs for display. */
  readonly password?: string;
  readonly database: string;
  /** Path of the trust bundle; absent if the client is configured otherwise. */
  readonly caFile?: string;
}

/** Facts of one engine that controllers use, beside the catalog's data. */
export interface EngineProfile {
  /** The form of a password that the engine stores; the password itself is never sent to a machine. */
  verifierOf(password: string): string;
  /** Databases of a new service. */
  readonly databases: readonly string[];
  /** The database that a connection string names. */
  readonly connectionDatabase: string;
  /** URI of a connection with a verified certificate. */
  uri(target: ConnectionTarget): string;
  /** Consumers get its URI as `DATABASE_URL`, and of other engines a variable for each part. */
  readonly hasDatabaseUrl?: true;
  /** Maximum lengths of names in the engine where it accepts less than the API, in characters. */
  readonly nameMax?: { readonly user?: number; readonly database?: number };
  /** Users with the attribute REPLICATION consume changes through logical slots. */
  readonly hasLogicalSlots?: true;
  /** Numbers of nodes of a service whose members elect their leader; absent: 1, 3, 4 and 5. */
  readonly memberCounts?: readonly number[];
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
  /**
   * URI of the default user with all nodes, for clients that find the primary among them; absent if clients cannot.
   */
  allNodesUri?(hosts: readonly string[], port: number): string;
}

/** User, host and port of a URI. */
export function authorityOf({ username, password, host, port }: ConnectionTarget): string {
  const user = [username, ...(password === undefined ? [] : [password])].map(encodeURIComponent).join(":");
  return `${user}@${host}:${port}`;
}
