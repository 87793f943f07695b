import { createHash } from "node:crypto";

/** SHA-256 of a certificate in DER, hex: by what a certificate is known that no authority vouches for. */
export function fingerprintOf(der: Uint8Array): string {
  return createHash("sha256").update(der).digest("hex");
}
