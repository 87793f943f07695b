import type { Identity } from "@holdfast/common/identity.ts";

/** An authority in this process, as what needs a certificate of it sees it. */
export interface IssuingAuthority extends Pick<Authority, "makeIdentity"> {
  /** Calls back when what is trusted, or who signs, changes. */
  subscribe(onChange: () => void): { close(): void };
}

/** The installation's own certificate authority. Its private key is sealed in the store. */
export interface Authority {
  /** PEM of every authority to trust now; two while one takes over from the other. */
  readonly trustBundle: string;
  /** SHA-256 of the signing authority's DER, hex. */
  readonly fingerprint: string;
  /** Counts changes of what is trusted or signs. */
  readonly generation: number;
  /** Client and server certificate of a part of the platform, with URI SAN holdfast://<installation>/<kind>/<id>. */
  issueIdentity(csr: Uint8Array, identity: Identity): Promise<IssuedCertificate>;
  /**
   * Server certificate of a database, for these DNS names and nothing that the request says. With a member's name as the common
   * name it is also for connecting to other members; it has no identity, so no part of the platform takes it for one of them.
   */
  issueServer(csr: Uint8Array, names: readonly string[], member?: string): Promise<IssuedCertificate>;
  /** A fresh key with a certificate, for a process that runs here. */
  makeIdentity(
    identity: Identity,
    names: readonly string[],
    addresses?: readonly string[],
  ): Promise<KeyWithCertificate>;
}

export interface IssuedCertificate {
  /** DER, the leaf first. */
  readonly chain: readonly Uint8Array[];
  readonly serial: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Of the authorities when it was issued. */
  readonly generation: number;
}

export interface KeyWithCertificate extends IssuedCertificate {
  /** PKCS #8 PEM. */
  readonly privateKey: string;
  /** PEM. */
  readonly certificate: string;
}
