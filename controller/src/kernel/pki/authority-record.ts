import { type EventOf, next } from "@holdfast/common/machine.ts";
import { root } from "../store/resource.ts";
import { type AuthorityRotationState, authorityRotationLifecycle } from "./authority-rotation-lifecycle.ts";

/** All certificate authorities of the installation: one value in the store, so that they change together. */
export interface AuthorityRecord {
  /** Oldest first; all of them are trusted. */
  readonly authorities: readonly StoredAuthority[];
  /** Fingerprint of the signing authority. */
  readonly signing: string;
  /**
   * Incremented by each change of the record. A holder of certificates of this generation has the current list of
   * trusted authorities.
   */
  readonly generation: number;
  readonly rotation: AuthorityRotation;
}

/** Progress of the rotation from one authority to the next. */
export interface AuthorityRotation {
  readonly state: AuthorityRotationState;
  /** Time at which the state was entered, in milliseconds since 1970. */
  readonly since: number;
  /** Earliest time at which the new authority signs, for clients that fetch the list of trusted ones periodically. */
  readonly signsFrom: number;
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

/** A certificate in PEM. */
export function pemOf(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** PEM of every trusted authority. */
export function trustBundleOf(record: AuthorityRecord): string {
  return record.authorities.map((each) => pemOf(Buffer.from(each.certificate, "base64"))).join("");
}

/** The record of a new installation. */
export function initialRecord(authority: StoredAuthority, now: number): AuthorityRecord {
  const rotation = { state: "idle", since: now, signsFrom: now } as const;
  return { authorities: [authority], signing: authority.fingerprint, generation: 1, rotation };
}

type RotationEvent = EventOf<typeof authorityRotationLifecycle>;

/** The record after the event; undefined if the event does not apply in its state, such as after a concurrent call. */
export function afterRotationEvent(
  record: AuthorityRecord,
  event: RotationEvent,
  now: number,
): AuthorityRecord | undefined {
  const row = next(authorityRotationLifecycle, record.rotation.state, event);
  if (row === undefined) return undefined;
  const newest = record.authorities.at(-1)?.fingerprint ?? record.signing;
  const signing = row[3] === "newestSigns" ? newest : record.signing;
  return {
    authorities:
      row[3] === "dropOthers"
        ? record.authorities.filter(({ fingerprint }) => fingerprint === signing)
        : record.authorities,
    signing,
    generation: record.generation + 1,
    rotation: { ...record.rotation, state: row[2], since: now },
  };
}

/**
 * The record with a second authority, which is trusted from now on. The first authority signs until `signsFrom`, and
 * until every machine trusts the second one.
 */
export function withSecondAuthority(
  record: AuthorityRecord,
  added: StoredAuthority,
  now: number,
  signsFrom: number,
): AuthorityRecord | undefined {
  const after = afterRotationEvent(record, "started", now);
  if (after === undefined) return undefined;
  return { ...after, authorities: [...after.authorities, added], rotation: { ...after.rotation, signsFrom } };
}
