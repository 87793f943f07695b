import { createSecureContext, type SecureContext } from "node:tls";

/** A key and its certificate, PEM; `cert` has the whole chain. */
export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

/**
 * The certificates of a port by the names that clients ask for (SNI). A change is for new connections; those that are open stay.
 * A pair that does not fit together throws, and the one before stays.
 */
export interface Certificates {
  /** The certificate of a name, or of each name one label below it: "db.example.com", "*.example.com". */
  hold(name: string, pair: KeyPair): void;
  /** Clients that ask for the name get the default certificate again. */
  release(name: string): void;
  /** Undefined for a name without a certificate of its own. */
  find(name: string): SecureContext | undefined;
}

/** Older versions of TLS are refused. */
export const minVersion = "TLSv1.2";

export function createCertificates(): Certificates {
  const contexts = new Map<string, SecureContext>();
  return {
    hold: (name, pair) => {
      contexts.set(name.toLowerCase(), createSecureContext({ ...pair, minVersion }));
    },
    release: (name) => {
      contexts.delete(name.toLowerCase());
    },
    find(name) {
      const asked = name.toLowerCase();
      return contexts.get(asked) ?? contexts.get(asked.replace(/^[^.]+/, "*"));
    },
  };
}
