/** What the controller has to know of one engine beyond the catalog's data. Pure. */
export interface EngineForm {
  /** What the engine keeps in place of a password; the password itself never reaches a machine. */
  verifierOf(password: string): string;
  /** Databases that every service has from its beginning. */
  readonly databases: readonly string[];
  /** The database that a connection opens. */
  readonly connectionDatabase: string;
  /** URI of a connection as the default user, without the password. */
  uri(host: string, port: number): string;
  /** Absent for an engine without replicas. */
  readonly replicas?: {
    /** They sign in to their primary with a secret beside their certificates. */
    readonly haveSecret?: true;
    /** Users are not part of what they get from their primary. */
    readonly haveOwnUsers?: true;
    /** Commits can wait for them. */
    readonly isSynchronous?: true;
    /**
     * They can say that none of them has taken the primary's place: it takes writes only while it has the right to. Agents know
     * it of this engine that know rights as far as this.
     */
    readonly confirmRights?: number;
    /** Parameters, whole numbers, of which they need as much as their primary has. */
    readonly needAsMuchOf?: readonly string[];
  };
  /** The same with all nodes, for a client that finds the primary among them; absent where clients cannot. */
  allNodesUri?(hosts: readonly string[], port: number): string;
}
