import type { Message } from "@bufbuild/protobuf";
import type { Connection } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { LogPositions } from "./log-positions.ts";

/** Target of a connection URI. */
export interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  /** Empty if the service has no default user. */
  readonly username: string;
  /** Absent in URIs for display. */
  readonly password?: string;
  readonly database: string;
  /** Path of the trust bundle; absent if the client is configured otherwise. */
  readonly caFile?: string;
}

/** Addresses of a service, and the user and database that its connection strings name. */
export interface ServiceEndpoints {
  /** The service by its name. */
  readonly service: ConnectionTarget;
  /** Names of the nodes, in the order of the service. */
  readonly nodeHosts: readonly string[];
  /** The listener without TLS in the private network; absent while it is disabled. */
  readonly privateListener?: { readonly port: number; readonly nodeHosts: readonly string[] };
  /** Port of the engine's own protocol where the service's port has another one; otherwise the service's port. */
  readonly enginePort: number;
}

/** Fields of a connection that clients of one engine need, without a password. */
export type ConnectionForms = Partial<Omit<Connection, keyof Message>>;

/** The facts of one engine that controllers use, in addition to the catalog. */
export interface EngineProfile {
  /** Hash of a password in the engine's format. The password itself is never sent to a machine. */
  verifierOf(password: string): string;
  /** True if the engine needs its users' passwords themselves: instance specs have them in place of verifiers. */
  readonly usersHaveSecrets?: true;
  /** False if a new service has no user, because the engine has none or because users are created later. */
  readonly hasDefaultUser?: false;
  /** Databases of a new service. */
  readonly databases: readonly string[];
  /** Database in connection strings. */
  readonly connectionDatabase: string;
  /** Connection URI by which clients verify the server's certificate. */
  uri(target: ConnectionTarget): string;
  /** Connection strings and settings of clients that do not read the URI; absent for an engine without them. */
  connectionForms?(endpoints: ServiceEndpoints): ConnectionForms;
  /** True if apps get the URI as `DATABASE_URL`. For other engines they get a variable for each part. */
  readonly hasDatabaseUrl?: true;
  /** Maximum lengths of names, in characters, if the engine accepts less than the API. */
  readonly nameMax?: { readonly user?: number; readonly database?: number };
  /** True if users with the attribute REPLICATION can consume changes through logical slots. */
  readonly hasLogicalSlots?: true;
  /** True if backups do not contain the users, so that a restored copy creates those of the source. */
  readonly copiesCreateUsers?: true;
  /** True if members that elect their leader authenticate to each other by a secret of the service. */
  readonly peersHaveSecret?: true;
  /** True if each member has a part of the data, which the others get when it is removed. */
  readonly peersShareData?: true;
  /** Absent for an engine without replicas. */
  readonly replicas?: {
    /** Functions that compare the positions that members report. */
    readonly positions: LogPositions;
    /** True if replicas authenticate to the primary with a secret, in addition to their certificates. */
    readonly haveSecret?: true;
    /** True if members admit each other by address, so that each gets the addresses of new ones. */
    readonly admitByAddress?: true;
    /** True if the data do not contain the users, so that each member must create them. */
    readonly haveOwnUsers?: true;
    /** True if commits can wait for replicas. */
    readonly isSynchronous?: true;
    /**
     * Version of the primary lease protocol: replicas confirm the primary's lease, and the primary takes writes only
     * while it has one. An agent with at least this version supports it for this engine.
     */
    readonly primaryLeaseVersion?: number;
    /** Integer parameters whose value must be at least the primary's. */
    readonly minimumFromPrimary?: readonly string[];
  };
}

/** User, host and port of a URI; without a user, host and port. */
export function authorityOf({ username, password, host, port }: ConnectionTarget): string {
  if (username === "") return `${host}:${port}`;
  const user = [username, ...(password === undefined ? [] : [password])].map(encodeURIComponent).join(":");
  return `${user}@${host}:${port}`;
}
