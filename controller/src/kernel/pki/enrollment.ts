import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "../secrets/sealer.ts";

/** Enrollment of a process in its object's status: of a machine's agent, or of a host. */
export interface EnrolledStatus {
  readonly enrollment: Enrollment | null;
  /** Serial of the only valid client certificate; a session with an older one is closed. */
  readonly certificate: {
    readonly serial: string;
    readonly previousSerial: string;
    /** Validity, in milliseconds since 1970. */
    readonly beganAt: number;
    readonly expiresAt: number;
    /** Generation of the authorities that issued it. */
    readonly authorityGeneration: number;
  } | null;
}

/** The current enrollment token. It is spent by compare-and-set. */
export interface Enrollment {
  /** Keyed hash of the token. */
  readonly tokenHash: string;
  readonly expiresAt: number;
  /** SHA-256 of the public key that spent the token; afterwards the token is valid for that key only. */
  readonly spentBy?: string;
  /**
   * host:port of the controllers that were delivered with the token; absent in enrollments from before this field
   * existed.
   */
  readonly controllers?: readonly string[];
  /**
   * Fingerprint of the authority that was delivered with the token; absent in enrollments from before this field
   * existed.
   */
  readonly caFingerprint?: string;
}

const lifetimeMs = 600_000;
const purpose = "machine-enrollment";

/** A one-time token of 256 bits for a machine's start, and its record for the object. Valid for ten minutes. */
export function mintEnrollment(sealer: Sealer, clock: Clock): { token: string; enrollment: Enrollment } {
  const token = randomBytes(32).toString("base64url");
  return { token, enrollment: { tokenHash: sealer.keyedHash(purpose, token), expiresAt: clock.now() + lifetimeMs } };
}

/** True if the token matches and has not expired. Compares in constant time. */
export function matchesEnrollment(enrollment: Enrollment | null, token: string, sealer: Sealer, clock: Clock): boolean {
  if (enrollment === null || clock.now() >= enrollment.expiresAt) return false;
  const expected = Buffer.from(enrollment.tokenHash, "utf8");
  const presented = Buffer.from(sealer.keyedHash(purpose, token), "utf8");
  return expected.length === presented.length && timingSafeEqual(expected, presented);
}
