import { createHash } from "node:crypto";
import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { bytePositions } from "./log-positions.ts";

export const valkey: EngineProfile = {
  // The SHA-256 that its ACL accepts instead of a password.
  verifierOf: (password) => `#${createHash("sha256").update(password).digest("hex")}`,
  databases: [],
  connectionDatabase: "0",
  replicas: { positions: bytePositions(offsetBytes), haveSecret: true, haveOwnUsers: true, primaryLeaseVersion: 2 },
  uri: (target) => `rediss://${authorityOf(target)}/${target.database}`,
};

/** A replication offset such as `73012`, in bytes; 0 for any other text. */
function offsetBytes(text: string): bigint {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
}
