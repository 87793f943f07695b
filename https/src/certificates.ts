import { createSecureContext, type SecureContext } from "node:tls";

/** A key and its certificate chain, in PEM. */
export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

/**
 * The certificates of a port by server name (SNI). A change applies to new connections. An invalid pair throws and
 * changes nothing.
 */
export interface Certificates {
  /** Sets the certificate of a name or wildcard: "db.example.com", "*.example.com". */
  set(name: string, pair: KeyPair): void;
  /** Removes the certificate; clients of this name get the default one. */
  delete(name: string): void;
  /** The certificate for a name; undefined if there is none. */
  find(name: string): SecureContext | undefined;
}

/** Minimum TLS version. */
export const minVersion = "TLSv1.2";

export function createCertificates(): Certificates {
  const contexts = new Map<string, SecureContext>();
  return {
    set: (name, pair) => {
      contexts.set(name.toLowerCase(), createSecureContext({ ...pair, minVersion }));
    },
    delete: (name) => {
      contexts.delete(name.toLowerCase());
    },
    find(name) {
      const requested = name.toLowerCase();
      return contexts.get(requested) ?? contexts.get(requested.replace(/^[^.]+/, "*"));
    },
  };
}
