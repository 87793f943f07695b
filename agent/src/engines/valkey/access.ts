import { EngineRefused } from "../engine-errors.ts";

/** ACL rules of each role; later rules win. No role has CONFIG, ACL, MODULE, DEBUG, REPLICAOF or SHUTDOWN. */
const rules: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    admin: [
      "+@all",
      "-@admin",
      "-@dangerous",
      ...["flushall", "flushdb", "info", "keys", "lastsave", "role", "slowlog", "sort", "sort_ro", "restore"].map(
        (name) => `+${name}`,
      ),
      ...["client|list", "client|kill", "latency|latest", "latency|history", "latency|reset"].map((name) => `+${name}`),
    ],
    readwrite: ["+@all", "-@admin", "-@dangerous", "+info"],
    readonly: [
      "-@all",
      "+@read",
      "+@connection",
      "+@transaction",
      "-@admin",
      "-@dangerous",
      ...["info", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe"].map(
        (name) => `+${name}`,
      ),
    ],
  }),
);

/**
 * Arguments of ACL SETUSER that give a user exactly this role and password. Throws EngineRefused for an unknown role.
 */
export function accessOf(role: string, verifier: string): string[] {
  const granted = rules.get(role);
  if (granted === undefined) throw new EngineRefused(`Unknown role ${role}. Roles: admin, readwrite, readonly.`);
  if (!/^#[0-9a-f]{64}$/.test(verifier)) throw new Error("the verifier is not a SHA-256 hash");
  return ["reset", "on", verifier, "~*", "&*", ...granted];
}

/** Commands for ACL DRYRUN that distinguish roles: a user has the first role whose command it may run. */
export const roleProbes: readonly { readonly role: string; readonly command: readonly string[] }[] = [
  { role: "admin", command: ["FLUSHALL"] },
  { role: "readwrite", command: ["SET", "key", "value"] },
  { role: "readonly", command: ["GET", "key"] },
];
