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

/** An attached resource, with the prefix of its variables. */
export interface Attached {
  readonly prefix: string;
  readonly outputs: Outputs;
}

/** Path of the platform's trust bundle on machines. */
export const machinesCaFile = "/etc/holdfast/ca.pem";
