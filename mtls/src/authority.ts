import type { Identity } from "@holdfast/common/identity.ts";

/** A certificate authority in this process, as seen by components that need a certificate. */
export interface IssuingAuthority extends Pick<Authority, "createIdentity"> {
  /** Calls back when the trusted or signing authorities change. */
  subscribe(onChange: () => void): { close(): void };
}

/** The installation's certificate authority. Its private key is sealed in the store. */
export interface Authority {
  /** PEM of all trusted authorities; two during a rotation. */
  readonly trustBundle: string;
  /** SHA-256 of the signing authority's certificate in DER, hex. */
  readonly fingerprint: string;
  /** Counter that each change of the trusted or signing authorities raises. */
  readonly generation: number;
  /** Issues a client and server certificate for a component, with the URI SAN holdfast://<installation>/<kind>/<id>. */
  issueIdentity(csr: Uint8Array, identity: Identity): Promise<IssuedCertificate>;
  /**
   * Issues a server certificate of a database for these DNS names; names in the request are ignored. With a member's
   * name as the common name it also authenticates connections to other members. It contains no identity, so no
   * component accepts it as one.
   */
  issueServer(csr: Uint8Array, names: readonly string[], member?: string): Promise<IssuedCertificate>;
  /** A new key with its certificate, for a process on this host. */
  createIdentity(
    identity: Identity,
    names: readonly string[],
    addresses?: readonly string[],
  ): Promise<KeyWithCertificate>;
}

export interface IssuedCertificate {
  /** DER certificates, the leaf first. */
  readonly chain: readonly Uint8Array[];
  readonly serial: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Generation of the authorities at the time of issue. */
  readonly generation: number;
}

export interface KeyWithCertificate extends IssuedCertificate {
  /** PKCS #8 PEM. */
  readonly privateKey: string;
  /** PEM. */
  readonly certificate: string;
}
