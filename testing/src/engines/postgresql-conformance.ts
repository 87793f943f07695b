import { connectPostgresql, postgresqlClient, scramVerifier } from "./engine-clients.ts";
import type { ConformanceSubject } from "./conformance-subject.ts";

/** Fields of the conformance suite that all drivers of PostgreSQL share. */
export const postgresqlSubject: Omit<ConformanceSubject, "name" | "skip" | "machine"> = {
  connect: postgresqlClient,
  connectPlain: (machine, options) => connectPostgresql(machine, { ...options, plain: true }),
  users: {
    verifierOf: scramVerifier,
    wrongPassword: /password authentication failed/,
    platformUser: /pg_hba/,
    mayNotWrite: /read-only transaction/,
  },
  refusals: {
    notAllowed: /pg_hba/,
    withoutTls: /no encryption/,
  },
  live: ["work_mem", "7MB"],
  atStart: ["max_connections", "60"],
};
