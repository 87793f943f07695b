import { EngineRefused } from "../engine-errors.ts";

/** What each role may do, as ACL rules: later ones win. Nobody has CONFIG, ACL, MODULE, DEBUG, REPLICAOF or SHUTDOWN. */
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

/** Arguments of ACL SETUSER that give a user exactly this role and password, whatever it had. */
export function accessOf(role: string, verifier: string): string[] {
  const granted = rules.get(role);
  if (granted === undefined) throw new EngineRefused(`${role} is no role: admin, readwrite or readonly`);
  if (!/^#[0-9a-f]{64}$/.test(verifier)) throw new Error("a password that is no SHA-256");
  return ["reset", "on", verifier, "~*", "&*", ...granted];
}

/** Commands that tell roles apart, for ACL DRYRUN: the first that a user may run says what it is. */
export const roleProbes: readonly { readonly role: string; readonly command: readonly string[] }[] = [
  { role: "admin", command: ["FLUSHALL"] },
  { role: "readwrite", command: ["SET", "key", "value"] },
  { role: "readonly", command: ["GET", "key"] },
];
