import { root } from "../store/resource.ts";

/** All authorities of the installation, one value in the store so that they change together. */
export interface AuthorityRecord {
  /** Oldest first; every one is trusted. */
  readonly authorities: readonly StoredAuthority[];
  /** Fingerprint of the one that signs. */
  readonly signing: string;
}

export interface StoredAuthority {
  /** SHA-256 of the DER, hex. */
  readonly fingerprint: string;
  /** DER, base64. */
  readonly certificate: string;
  /** PKCS #8 PEM, sealed with the record's key as associated data. */
  readonly sealedKey: string;
  readonly notAfter: number;
}

export const authorityKey = `${root}/pki/authorities`;

export function pemOf(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

export function trustBundleOf(record: AuthorityRecord): string {
  return record.authorities.map((each) => pemOf(Buffer.from(each.certificate, "base64"))).join("");
}

/** A second authority, trusted from now on; the first one still signs. */
export function withAuthority(record: AuthorityRecord | undefined, added: StoredAuthority): AuthorityRecord {
  if (record === undefined) return { authorities: [added], signing: added.fingerprint };
  if (record.authorities.length > 1) throw new Error("two authorities overlap already: drop one first");
  return { ...record, authorities: [...record.authorities, added] };
}

/** The other authority signs from now on; both stay trusted. */
export function signedBy(record: AuthorityRecord, fingerprint: string): AuthorityRecord {
  if (!record.authorities.some((each) => each.fingerprint === fingerprint)) throw new Error("no such authority");
  return { ...record, signing: fingerprint };
}

/** Ends the trust in an authority that no longer signs. */
export function withoutAuthority(record: AuthorityRecord, fingerprint: string): AuthorityRecord {
  if (record.signing === fingerprint) throw new Error("the authority that signs cannot be dropped");
  return { ...record, authorities: record.authorities.filter((each) => each.fingerprint !== fingerprint) };
}
