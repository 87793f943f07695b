import { createHash } from "node:crypto";
import { authorityOf, type EngineProfile } from "@holdfast/controller/services/engine/engine-profile.ts";

export const etcd: EngineProfile = {
  verifierOf: (password) => createHash("sha256").update(password).digest("hex"),
  hasDefaultUser: false,
  databases: [],
  connectionDatabase: "",
  uri: (target) => `https://${authorityOf(target)}`,
};
