import { timingSafeEqual } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { lookUp } from "../look-up.ts";

/** Who signs: a key of an S3 store, or the one that controllers share with the process that serves a directory. */
export interface StoreKey {
  readonly id: string;
  readonly secret: string;
  readonly region: string;
}

/** Name that the process which serves a directory is known by, and the bucket that all of its objects are in. */
export const storeName = "store.holdfast.internal";
export const storeBucket = "objects";

/** Of a directory's store: controllers and its process have the secret in a file. */
export function directoryKey(secret: string): StoreKey {
  return { id: "holdfast", secret, region: "local" };
}

export interface SignedRequest {
  readonly method: string;
  readonly url: string;
  /** All of them are signed: they must be sent exactly so. */
  readonly headers: Readonly<Record<string, string>>;
}

const signatureName = "X-Amz-Signature";
const longestSeconds = 7 * 86_400;

/** A URL with its signature (AWS Signature Version 4 in the query, the body unsigned), good from `at` on for so many seconds. */
export async function signUrl(request: SignedRequest, key: StoreKey, expiresInS: number, at: Date): Promise<string> {
  if (expiresInS > longestSeconds) throw new Error(`a URL is good for ${longestSeconds} s at most`);
  const url = new URL(request.url);
  url.searchParams.set("X-Amz-Expires", String(Math.round(expiresInS)));
  return (await signed(url.href, request, key, amzDate(at))).href;
}

/** Why a URL is not good for this request; undefined when it is. Headers by lower-case names. */
export async function refusalOf(request: SignedRequest, key: StoreKey, now: number): Promise<string | undefined> {
  const url = new URL(request.url);
  const query = url.searchParams;
  const given = query.get(signatureName) ?? "";
  const date = query.get("X-Amz-Date") ?? "";
  const names = (query.get("X-Amz-SignedHeaders") ?? "").split(";").filter((name) => name !== "host");
  const signedAt = timeOf(date);
  const expiresMs = Number(query.get("X-Amz-Expires") ?? 0) * 1_000;
  if (signedAt === undefined || given === "") return "it is not signed";
  if (!(expiresMs > 0 && expiresMs <= longestSeconds * 1_000)) return "it has no good end";
  // A controller whose clock is ahead signs for times to come: nobody gains by that, and backups go on.
  if (signedAt + expiresMs < now) return "its time is over";
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = lookUp(request.headers, name);
    if (value === undefined) return `its header ${name} is missing`;
    headers[name] = value;
  }
  for (const name of [signatureName, "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Algorithm", "X-Amz-Credential"])
    query.delete(name);
  const expected = await signed(url.href, { ...request, headers }, key, date);
  return isSame(expected.searchParams.get(signatureName) ?? "", given) ? undefined : "its signature is not good";
}

async function signed(url: string, { method, headers }: SignedRequest, key: StoreKey, datetime: string): Promise<URL> {
  const signer = new AwsV4Signer({
    method,
    url,
    headers: { ...headers },
    accessKeyId: key.id,
    secretAccessKey: key.secret,
    service: "s3",
    region: key.region,
    datetime,
    signQuery: true,
  });
  return (await signer.sign()).url;
}

const amzDate = (at: Date) => at.toISOString().replaceAll(/[:-]|\.\d{3}/g, "");

function timeOf(date: string): number | undefined {
  const found = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  if (found === null) return undefined;
  const [, ...fields] = found.map(Number);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = fields;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
