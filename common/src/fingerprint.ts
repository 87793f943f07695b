import { createHash } from "node:crypto";

/** SHA-256 of a certificate in DER, as hex. It identifies a certificate that no authority signed. */
export function fingerprintOf(der: Uint8Array): string {
  return createHash("sha256").update(der).digest("hex");
}
