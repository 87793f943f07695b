import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { valkeyVerifier } from "#kernel/secrets/passwords.ts";
import type { EngineProfile } from "./engine-profile.ts";
import { bytePositions } from "./log-positions.ts";

export const valkey: EngineProfile = {
  verifierOf: valkeyVerifier,
  databases: [],
  connectionDatabase: "0",
  replicas: { positions: bytePositions(offsetBytes), haveSecret: true, haveOwnUsers: true, primaryLeaseVersion: 2 },
  uri: (host, port) => `rediss://${defaultUser}@${host}:${port}/0`,
};

/** A replication offset such as `73012`, in bytes; 0 for any other text. */
function offsetBytes(text: string): bigint {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
}
