import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { bytePositions } from "./log-positions.ts";
import { scramSha256Verifier } from "./scram-verifier.ts";

export const postgresql: EngineProfile = {
  verifierOf: (password) => scramSha256Verifier(password),
  databases: [defaultDatabase],
  connectionDatabase: defaultDatabase,
  hasLogicalSlots: true,
  replicas: {
    positions: bytePositions(lsnBytes),
    isSynchronous: true,
    primaryLeaseVersion: 1,
    minimumFromPrimary: [
      "max_connections",
      "max_worker_processes",
      "max_prepared_transactions",
      "max_locks_per_transaction",
    ],
  },
  connectionForms({ service, nodeHosts }) {
    const hosts = nodeHosts.map((host) => `${host}:${service.port}`).join(",");
    return {
      allNodesUri: `postgres://${service.username}@${hosts}/${service.database}?sslmode=verify-full&target_session_attrs=read-write`,
    };
  },
  hasDatabaseUrl: true,
  uri(target) {
    const root = target.caFile === undefined ? "" : `&sslrootcert=${target.caFile}`;
    return `postgres://${authorityOf(target)}/${target.database}?sslmode=verify-full${root}`;
  },
};

/** Bytes of an LSN such as `0/5000148` (two hexadecimal halves); 0 for any other string. */
function lsnBytes(text: string): bigint {
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  return found === null ? 0n : (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}
