import { type StoreKey, signUrl } from "@holdfast/common/objects/signed-url.ts";
import { checkKey } from "@holdfast/common/objects/object-store.ts";

/** Signs URLs that let a holder without a credential write or read one object. */
export interface UrlSigner {
  /** PUT is write-once: an existing object stays, and the store answers 412. */
  sign(use: { readonly method: "PUT" | "GET" | "HEAD"; readonly key: string }, expiresInS: number): Promise<SignedUrl>;
  readonly endpoint: StoreEndpoint;
}

export interface SignedUrl {
  readonly url: string;
  /** To be sent exactly so. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Address of the store, for machines that resolve no names. */
export interface StoreEndpoint {
  readonly addresses: () => Promise<readonly string[]>;
  readonly port: number;
  /** PEM of the authorities to trust; empty for public authorities. */
  readonly trustBundle: () => string;
}

export interface UrlSignerDeps {
  /** URL of the bucket and a prefix in it, without a slash at its end. */
  readonly base: string;
  readonly key: StoreKey;
  readonly endpoint: StoreEndpoint;
  /** Asks an S3 store to encrypt by itself as well. */
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
