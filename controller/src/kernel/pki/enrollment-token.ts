import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Enrollment } from "./enrolled-status.ts";

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
