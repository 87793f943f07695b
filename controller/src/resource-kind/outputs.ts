/** Connection data of a resource, for its consumers. */
export type Outputs = DatabaseOutputs | FilesOutputs | AppOutputs;

export interface DatabaseOutputs {
  readonly type: "database";
  readonly engine: string;
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

export interface FilesOutputs {
  readonly type: "files";
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface AppOutputs {
  readonly type: "app";
  readonly host: string;
  readonly port: number;
}

/** Path of the platform's trust bundle on machines. */
export const machinesCaFile = "/etc/holdfast/ca.pem";

/**
 * URI of a verified connection, with the password. `caFile`: path of the trust bundle; null: the client is configured
 * otherwise.
 */
export function connectionUri(outputs: DatabaseOutputs, caFile: string | null): string {
  const { engine, host, port, username, password, database } = outputs;
  const authority = `${encodeURIComponent(username)}:${encodeURIComponent(password)}@${host}:${port}`;
  if (engine === "valkey") return `rediss://${authority}/${database}`;
  if (engine !== "postgresql") return `${engine}://${authority}/${database}`;
  const root = caFile === null ? "" : `&sslrootcert=${caFile}`;
  return `postgres://${authority}/${database}?sslmode=verify-full${root}`;
}
