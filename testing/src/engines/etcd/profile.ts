import { createHash } from "node:crypto";
import { authorityOf, type EngineProfile } from "@holdfast/controller/services/engine/engine-profile.ts";

/**
 * Profile of etcd, an engine of the tests without users. Unlike the drivers of other engines, its driver does not
 * enforce the allow-list: each address can read and write, so no installation offers it.
 */
export const etcd: EngineProfile = {
  verifierOf: (password) => createHash("sha256").update(password).digest("hex"),
  hasDefaultUser: false,
  databases: [],
  connectionDatabase: "",
  uri: (target) => `https://${authorityOf(target)}`,
};
