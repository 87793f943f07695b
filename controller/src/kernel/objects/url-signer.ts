import { type StoreKey, signUrl } from "@holdfast/common/objects/signed-url.ts";
import { checkKey } from "@holdfast/common/objects/object-store.ts";

/** Signs URLs that permit a client without a credential to write or read one object. */
export interface UrlSigner {
  /** A PUT writes once: the store responds 412 if the object exists. */
  sign(use: { readonly method: "PUT" | "GET" | "HEAD"; readonly key: string }, expiresInS: number): Promise<SignedUrl>;
  readonly endpoint: StoreEndpoint;
}

export interface SignedUrl {
  readonly url: string;
  /** Headers that the request must have unchanged. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Address of the store, for machines that cannot resolve public names. */
export interface StoreEndpoint {
  readonly addresses: () => Promise<readonly string[]>;
  readonly port: number;
  /** PEM of the authorities to trust; empty: the public authorities. */
  readonly trustBundle: () => string;
}

export interface UrlSignerDeps {
  /** URL of the bucket and an optional prefix, without a trailing slash. */
  readonly base: string;
  readonly key: StoreKey;
  readonly endpoint: StoreEndpoint;
  /** True: requests server-side encryption from an S3 store, in addition to encryption by Holdfast. */
  readonly serverSideEncryption: boolean;
  readonly now: () => number;
}

export function createUrlSigner({ base, key, endpoint, serverSideEncryption, now }: UrlSignerDeps): UrlSigner {
  return {
    endpoint,
    async sign({ method, key: object }, expiresInS) {
      checkKey(object);
      const headers: Record<string, string> =
        method === "PUT"
          ? { "if-none-match": "*", ...(serverSideEncryption && { "x-amz-server-side-encryption": "AES256" }) }
          : {};
      const url = await signUrl({ method, url: `${base}/${object}`, headers }, key, expiresInS, new Date(now()));
      return { url, headers };
    },
  };
}
