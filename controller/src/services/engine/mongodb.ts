import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { postgresql } from "./postgresql.ts";

const { verifierOf, databases, connectionDatabase, replicas } = postgresql;

/** Users and replicas are those of PostgreSQL below. */
export const mongodb: EngineProfile = {
  verifierOf,
  databases,
  connectionDatabase,
  ...(replicas && { replicas }),
  uri(target) {
    const root = target.caFile === undefined ? "" : `&tlsCAFile=${target.caFile}`;
    return `mongodb://${authorityOf(target)}/${target.database}?tls=true&authSource=admin${root}`;
  },
};
