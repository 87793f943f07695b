import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { valkeyVerifier } from "#kernel/secrets/passwords.ts";
import type { EngineProfile } from "./engine-profile.ts";

export const valkey: EngineProfile = {
  verifierOf: valkeyVerifier,
  databases: [],
  connectionDatabase: "0",
  replicas: { haveSecret: true, haveOwnUsers: true, primaryLeaseVersion: 2 },
  uri: (host, port) => `rediss://${defaultUser}@${host}:${port}/0`,
};
