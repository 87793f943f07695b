import type { Connection } from "@holdfast/sdk/responses.ts";
import { UsageError } from "../exit-code.ts";
import type { PrivateFiles } from "../private-files.ts";

/** The command-line client of one engine. */
export interface EngineClient {
  /** Other names of its engine, such as `postgres`. */
  readonly aliases?: readonly string[];
  /** The parameter of a URI that names the file of the certificate authority; absent for a URI without parameters. */
  readonly uriAuthority?: string;
  /** Names of its program, the preferred one first. */
  readonly programs: readonly [string, ...string[]];
  /** Directory of an image with a directory for each version, which has the program in `bin`. */
  readonly versionsIn?: string;
  /**
   * Arguments, environment and input of a session with a verified certificate. A password is in a file, the environment
   * or the input, never an argument.
   */
  session(connection: Connection, login: Login, files: Pick<PrivateFiles, "write">): ClientSession;
  /** True for an engine without users: its sessions get an empty login. */
  readonly hasNoUsers?: true;
  /** True if the client verifies the issuer of the certificate but not its host name. */
  readonly ignoresHostName?: true;
  /** Absent for an engine without connection strings that name files. */
  readonly conninfo?: ConninfoFormat;
  /** Complete programs by language; absent for an engine without any. */
  readonly snippets?: Readonly<Partial<Record<SnippetLanguage, (values: Snippet) => string>>>;
  /** True if the client connects to names alone. It then sees their addresses, if the host does not resolve them. */
  readonly resolvesName?: true;
  /** Arguments of the client for those of the user; the same ones by default. */
  arguments?(args: readonly string[]): readonly string[];
  /** True if users are created by the API alone: a copy has a password for each of them. */
  readonly hasManagedUsersOnly?: true;
  /** True if the members elect their leader, so that one member grows to three in one step. */
  readonly electsLeader?: true;
}

export const snippetLanguages = ["node", "python", "go", "java", "ruby", "php", "curl", "psql"] as const;

export type SnippetLanguage = (typeof snippetLanguages)[number];

/** Values of a program that connects. */
export interface Snippet {
  /** Name to verify. */
  readonly host: string;
  /** Address to connect to. */
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly caFile: string;
  /** File that has only the password. */
  readonly passwordFile: string;
  /** File with address and name, in the format of /etc/hosts. */
  readonly hostsFile: string;
  /** Connection string of libpq with these values; empty for an engine without connection strings. */
  readonly conninfo: string;
}

export interface Login {
  readonly user: string;
  readonly password: string;
  /** Database to connect to; absent for the default database. */
  readonly database?: string | undefined;
}

export interface ClientSession {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Lines before the user's own input, for a client that reads the password there; it then has no terminal. */
  readonly input?: string;
}

/** Connection strings that contain no secret, because they name files. */
export interface ConninfoFormat {
  print(connection: Connection, login: Login, files: Pick<PrivateFiles, "write">): string;
  /** A shell command that connects with the output of a command. */
  example(command: string): string;
}

/** The listener and node of a connection; the primary's own listener by default. */
export interface Route {
  readonly pooled?: boolean | undefined;
  readonly replica?: boolean | undefined;
}

/** The connection by a route. Throws UsageError for a pooler that is disabled. */
export function routed(connection: Connection, { pooled, replica }: Route): Connection {
  if (pooled === true) {
    if (connection.pooled_uri === null)
      throw new UsageError("the service has no pooler: services update SERVICE --pooler on enables it");
    return { ...connection, port: Number(new URL(connection.pooled_uri).port) };
  }
  if (replica !== true) return connection;
  const replicas = connection.nodes.filter((node) => node.role !== "primary" && node.addresses.length > 0);
  // Empty for engines whose nodes elect their leader; some installations return a host without a scheme for them.
  const host = connection.replica_uri === "" ? "" : new URL(connection.replica_uri).hostname;
  if (host === "") throw new UsageError("the nodes of this service have no replicas for reads: omit --replica");
  return { ...connection, host, nodes: replicas.length > 0 ? replicas : connection.nodes };
}

/** Address of the primary's machine; undefined without one. */
export function primaryAddress({ nodes }: Connection): string | undefined {
  return (nodes.find((node) => node.role === "primary") ?? nodes[0])?.addresses[0];
}
