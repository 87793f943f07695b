import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { cachingSha2Verifier } from "./caching-sha2-verifier.ts";
import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { gtidPositions } from "./gtid-positions.ts";

export const mysql: EngineProfile = {
  verifierOf: (password) => cachingSha2Verifier(password),
  databases: [defaultDatabase],
  connectionDatabase: defaultDatabase,
  nameMax: { user: 32 },
  replicas: {
    positions: gtidPositions,
    haveSecret: true,
    admitByAddress: true,
    isSynchronous: true,
    primaryLeaseVersion: 3,
  },
  hasDatabaseUrl: true,
  uri(target) {
    const root = target.caFile === undefined ? "" : `&ssl-ca=${target.caFile}`;
    return `mysql://${authorityOf(target)}/${target.database}?ssl-mode=VERIFY_IDENTITY${root}`;
  },
};
