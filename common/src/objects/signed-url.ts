import { timingSafeEqual } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { lookUp } from "../look-up.ts";

/** Key that signs URLs: one of an S3 store, or the secret that controllers share with the store process. */
export interface StoreKey {
  readonly id: string;
  readonly secret: string;
  readonly region: string;
}

/** Host name of the process that serves a directory, and the bucket of all its objects. */
export const storeName = "store.holdfast.internal";
export const storeBucket = "objects";

/** Key of a directory store; controllers and the store process read the secret from a file. */
export function directoryKey(secret: string): StoreKey {
  return { id: "holdfast", secret, region: "local" };
}

export interface SignedRequest {
  readonly method: string;
  readonly url: string;
  /** Signed headers, which must be sent unchanged. */
  readonly headers: Readonly<Record<string, string>>;
}

const signatureName = "X-Amz-Signature";
const maxSeconds = 7 * 86_400;

/**
 * Signs a URL with AWS Signature Version 4 in the query, without the body; valid for `expiresInS` seconds from `at` on.
 */
export async function signUrl(request: SignedRequest, key: StoreKey, expiresInS: number, at: Date): Promise<string> {
  if (expiresInS > maxSeconds) throw new Error(`a URL is valid for at most ${maxSeconds} s`);
  const url = new URL(request.url);
  url.searchParams.set("X-Amz-Expires", String(Math.round(expiresInS)));
  return (await signed(url.href, request, key, amzDate(at))).href;
}

/**
 * The reason why a signed URL is invalid for this request; undefined if it is valid. Header names are in lower case.
 */
export async function signatureFault(request: SignedRequest, key: StoreKey, now: number): Promise<string | undefined> {
  const url = new URL(request.url);
  const query = url.searchParams;
  const signature = query.get(signatureName) ?? "";
  const date = query.get("X-Amz-Date") ?? "";
  const names = (query.get("X-Amz-SignedHeaders") ?? "").split(";").filter((name) => name !== "host");
  const signedAt = timeOf(date);
  const expiresMs = Number(query.get("X-Amz-Expires") ?? 0) * 1_000;
  if (signedAt === undefined || signature === "") return "it is not signed";
  if (!(expiresMs > 0 && expiresMs <= maxSeconds * 1_000)) return "its expiry is invalid";
  // A signing time in the future is accepted: it gains an attacker nothing, and a controller's clock may be ahead.
  if (signedAt + expiresMs < now) return "it has expired";
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = lookUp(request.headers, name);
    if (value === undefined) return `its header ${name} is missing`;
    headers[name] = value;
  }
  for (const name of [signatureName, "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Algorithm", "X-Amz-Credential"])
    query.delete(name);
  const expected = await signed(url.href, { ...request, headers }, key, date);
  return isSame(expected.searchParams.get(signatureName) ?? "", signature) ? undefined : "its signature is invalid";
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
