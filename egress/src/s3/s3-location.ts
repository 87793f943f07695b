import { readFile } from "node:fs/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { StoreKey } from "@holdfast/common/objects/signed-url.ts";

/** A bucket of an S3 store, and a prefix in it. */
export interface S3Location {
  /** URL of the bucket, path style, without a trailing slash. */
  readonly bucketUrl: string;
  /** Prefix of all keys: empty, or with a trailing slash. */
  readonly prefix: string;
  readonly key: StoreKey;
  /** PEM of the authorities to trust; undefined: Node's default list. */
  readonly ca: string | undefined;
  readonly serverSideEncryption: boolean;
}

/** Settings of a process that has the credential of the store. */
export interface S3Settings {
  readonly objectsKeyFile: string;
  readonly objectsCa: string;
  readonly objectsEncryption: string;
}

/** The location of an `s3:` URL. Throws NOT_CONFIGURED without bucket, endpoint or credential. */
export async function readS3Location(url: URL, settings: S3Settings): Promise<S3Location> {
  const bucket = url.hostname;
  const endpoint = url.searchParams.get("endpoint") ?? "";
  const region = url.searchParams.get("region") ?? "us-east-1";
  if (bucket === "" || !URL.canParse(endpoint)) {
    throw new HoldfastError(
      "NOT_CONFIGURED",
      "HOLDFAST_OBJECTS of an S3 store has the form s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION.",
    );
  }
  const path = decodeURIComponent(url.pathname).replaceAll(/^\/+|\/+$/g, "");
  return {
    bucketUrl: `${new URL(endpoint).origin}/${bucket}`,
    prefix: path === "" ? "" : `${path}/`,
    key: { ...(await readCredential(settings.objectsKeyFile)), region },
    ca: settings.objectsCa === "" ? undefined : await readFile(settings.objectsCa, "utf8"),
    serverSideEncryption: settings.objectsEncryption === "AES256",
  };
}

/** Reads `{"id": "...", "secret": "..."}`. */
async function readCredential(file: string): Promise<{ readonly id: string; readonly secret: string }> {
  if (file === "") throw new HoldfastError("NOT_CONFIGURED", "An S3 store needs HOLDFAST_OBJECTS_KEY_FILE.");
  const { id, secret } = JSON.parse(await readFile(file, "utf8")) as { id?: unknown; secret?: unknown };
  if (typeof id === "string" && typeof secret === "string") return { id, secret };
  throw new HoldfastError("NOT_CONFIGURED", `${file} must be JSON with the members id and secret.`);
}
