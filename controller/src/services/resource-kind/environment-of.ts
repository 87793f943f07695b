import { engineProfileOf } from "#services/engine/engine-profiles.ts";
import {
  type Attached,
  type DatabaseOutputs,
  type FilesOutputs,
  machinesCaFile,
  type Outputs,
} from "#resource-kind/outputs.ts";

export interface Consumer {
  readonly apiToken: string;
  readonly apiUrl: string;
  /** Path of the trust bundle in the consumer's file system. */
  readonly caFile?: string;
}

type Variables = Readonly<Record<string, string>>;

/** Prefix of the variables of a resource: `ORDERS_DB` for `orders-db`. */
export function prefixOf(name: string): string {
  return name.toUpperCase().replaceAll("-", "_");
}

/** The variables of a consumer (spec 3, Injected environment variables). */
export function environmentOf({ apiToken, apiUrl, caFile }: Consumer, attachments: readonly Attached[]): Variables {
  return {
    ...attachmentVariables(attachments, caFile),
    PLATFORM_API_TOKEN: apiToken,
    PLATFORM_API_URL: apiUrl,
  };
}

/** The variables of a consumer's attachments. */
export function attachmentVariables(attachments: readonly Attached[], caFile: string = machinesCaFile): Variables {
  const ofType = <T extends Outputs["type"]>(type: T) =>
    attachments.filter(
      (each): each is Attached & { outputs: Extract<Outputs, { type: T }> } => each.outputs.type === type,
    );
  const databases = ofType("database");
  const hasUrl = ({ outputs }: (typeof databases)[number]) => engineProfileOf(outputs.engine).hasDatabaseUrl === true;
  const withUrl = databases.filter(hasUrl);
  const others = databases.filter((each) => !hasUrl(each));
  return {
    ...merged(withUrl, ({ prefix, outputs }) => ({
      [withUrl.length === 1 ? "DATABASE_URL" : `${prefix}_DATABASE_URL`]: engineProfileOf(outputs.engine).uri({
        ...outputs,
        caFile,
      }),
    })),
    ...merged(others, ({ prefix, outputs }) => otherEngine(prefix, outputs, caFile)),
    ...filesVariables(ofType("files")),
    ...merged(ofType("app"), ({ prefix, outputs: { host, port } }) => ({
      [`${prefix}_HOST`]: host,
      [`${prefix}_PORT`]: String(port),
      [`${prefix}_URL`]: `http://${host}:${port}`,
    })),
  };
}

/** The variables of a consumer's files services: without a prefix if there is one alone. */
export function filesVariables(attached: readonly (Attached & { readonly outputs: FilesOutputs })[]): Variables {
  const isAlone = attached.length === 1;
  return merged(attached, ({ prefix, outputs }) => (isAlone ? onlyFiles(outputs) : oneOfFiles(prefix, outputs)));
}

/** True if the platform may set a variable of this name for a consumer with attachments of these prefixes. */
export function isReservedName(name: string, prefixes: readonly string[]): boolean {
  if (alwaysReserved.has(name)) return true;
  return prefixes.some((prefix) => name.startsWith(`${prefix}_`) && suffixes.has(name.slice(prefix.length)));
}

const alwaysReserved: ReadonlySet<string> = new Set([
  "DATABASE_URL",
  "PLATFORM_API_TOKEN",
  "PLATFORM_API_URL",
  "S3_ENDPOINT",
  "S3_BUCKET",
  "S3_ACCESS_KEY",
  "S3_SECRET",
]);

const suffixes: ReadonlySet<string> = new Set([
  "_DATABASE_URL",
  "_HOST",
  "_PORT",
  "_URL",
  "_USERNAME",
  "_PASSWORD",
  "_S3_ENDPOINT",
  "_S3_BUCKET",
  "_S3_ACCESS_KEY_ID",
  "_S3_SECRET_ACCESS_KEY",
]);

function otherEngine(prefix: string, outputs: DatabaseOutputs, caFile: string): Variables {
  return {
    [`${prefix}_HOST`]: outputs.host,
    [`${prefix}_PORT`]: String(outputs.port),
    [`${prefix}_USERNAME`]: outputs.username,
    [`${prefix}_PASSWORD`]: outputs.password,
    [`${prefix}_URL`]: engineProfileOf(outputs.engine).uri({ ...outputs, caFile }),
  };
}

function onlyFiles({ endpoint, bucket, accessKeyId, secretAccessKey }: FilesOutputs): Variables {
  return { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY: accessKeyId, S3_SECRET: secretAccessKey };
}

function oneOfFiles(prefix: string, { endpoint, bucket, accessKeyId, secretAccessKey }: FilesOutputs): Variables {
  return {
    [`${prefix}_S3_ENDPOINT`]: endpoint,
    [`${prefix}_S3_BUCKET`]: bucket,
    [`${prefix}_S3_ACCESS_KEY_ID`]: accessKeyId,
    [`${prefix}_S3_SECRET_ACCESS_KEY`]: secretAccessKey,
  };
}

function merged<T>(all: readonly T[], variablesOf: (each: T) => Variables): Variables {
  return Object.assign({}, ...all.map(variablesOf));
}
