import { createHash } from "node:crypto";
import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { bytePositions } from "./log-positions.ts";

export const valkey: EngineProfile = {
  // ACLs of Valkey accept a SHA-256 in place of a password.
  verifierOf: (password) => `#${createHash("sha256").update(password).digest("hex")}`,
  databases: [],
  connectionDatabase: "0",
  copiesCreateUsers: true,
  replicas: { positions: bytePositions(offsetBytes), haveSecret: true, haveOwnUsers: true, primaryLeaseVersion: 2 },
  uri: (target) => `rediss://${authorityOf(target)}/${target.database}`,
};

/** Bytes of a replication offset such as `73012`; 0 for any other string. */
function offsetBytes(text: string): bigint {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
}
