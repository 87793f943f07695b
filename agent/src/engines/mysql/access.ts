import { EngineRefused } from "../engine-errors.ts";
import { platform } from "./layout.ts";

/** Privileges of an account on all databases, with exceptions by database. */
export interface Access {
  readonly privileges: readonly string[];
  readonly dynamic: readonly string[];
  /** May give its own privileges to others. */
  readonly grants: boolean;
  /** Restrictions by database (`partial_revokes`). */
  readonly restrictions: Readonly<Record<string, readonly string[]>>;
}

const reads = ["SELECT", "SHOW VIEW"];
const writes = [...reads, "INSERT", "UPDATE", "DELETE", "EXECUTE", "CREATE TEMPORARY TABLES", "LOCK TABLES"];
// biome-ignore format: a table
const defines = ["CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "TRIGGER", "EVENT", "CREATE VIEW", "CREATE ROUTINE", "ALTER ROUTINE"];
/** Privileges that exist only for the server, not for a database. */
// biome-ignore format: a table
const serves = ["SHOW DATABASES", "PROCESS", "CREATE USER", "CREATE ROLE", "DROP ROLE", "REPLICATION SLAVE", "REPLICATION CLIENT"];

/** Databases of the engine that users may read, by the privileges that are revoked for them. */
const readable = {
  sys: ["INSERT", "UPDATE", "DELETE", ...defines],
  // DROP empties the engine's statistics.
  performance_schema: ["INSERT", "UPDATE", "DELETE"],
};

function accessWith(
  inDatabases: readonly string[],
  serverWide: { readonly privileges?: readonly string[]; readonly dynamic?: readonly string[] } = {},
): Access {
  const { privileges = [], dynamic = [] } = serverWide;
  const among = (names: readonly string[]) => inDatabases.filter((name) => names.includes(name));
  const restrictions = Object.entries({
    mysql: inDatabases,
    [platform]: inDatabases,
    sys: among(readable.sys),
    performance_schema: among(readable.performance_schema),
  }).filter(([, names]) => names.length > 0);
  return {
    privileges: [...inDatabases, ...privileges],
    dynamic,
    grants: privileges.length > 0,
    restrictions: Object.fromEntries(restrictions),
  };
}

/**
 * Privileges that accounts of an earlier release lack: with or without them a role is the same. ROLE_ADMIN grants no
 * account that has SYSTEM_USER, as all of the platform's have.
 */
const later = ["FLUSH_PRIVILEGES", "ROLE_ADMIN"];

/**
 * Privileges by role. None has SUPER, FILE, SHUTDOWN, RELOAD, CREATE TABLESPACE or a privilege over other accounts'
 * sessions.
 */
const roles: ReadonlyMap<string, Access> = new Map([
  [
    "admin",
    accessWith([...writes, ...defines], {
      privileges: serves,
      dynamic: ["FLUSH_STATUS", "FLUSH_TABLES", "SHOW_ROUTINE", "XA_RECOVER_ADMIN", ...later],
    }),
  ],
  ["readwrite", accessWith(writes)],
  ["readonly", accessWith(reads)],
]);

/** Throws EngineRefused for an unknown role. */
export function accessOf(role: string): Access {
  const found = roles.get(role);
  if (found === undefined) throw new EngineRefused(`Unknown role ${role}. Roles: ${[...roles.keys()].join(", ")}.`);
  return found;
}

/** Statements that give an account without privileges exactly this access. */
export function grantSql(account: string, { privileges, dynamic, grants, restrictions }: Access): string[] {
  const option = grants ? " WITH GRANT OPTION" : "";
  return [
    `GRANT ${privileges.join(", ")} ON *.* TO ${account}${option}`,
    ...(dynamic.length === 0 ? [] : [`GRANT ${dynamic.join(", ")} ON *.* TO ${account}`]),
    ...Object.entries(restrictions).map(([name, names]) => `REVOKE ${names.join(", ")} ON ${name}.* FROM ${account}`),
  ];
}

/** The role whose access these lines of SHOW GRANTS describe; `custom` for any other. */
export function roleOfGrants(lines: readonly string[]): string {
  const found = fingerprintOf(accessIn(lines));
  for (const [role, access] of roles) if (fingerprintOf(access) === found) return role;
  return "custom";
}

/** Parses SHOW GRANTS. Privileges on single databases, tables and routines, and roles of users, are ignored. */
function accessIn(lines: readonly string[]): Access {
  const privileges: string[] = [];
  const dynamic: string[] = [];
  const restrictions: Record<string, string[]> = {};
  let grants = false;
  for (const line of lines) {
    const granted = /^GRANT (.+) ON \*\.\* TO /.exec(line)?.[1];
    const names = granted?.split(",").map((name) => name.trim()) ?? [];
    // Dynamic privileges have underscores instead of spaces.
    for (const name of names.filter((each) => each !== "USAGE")) (name.includes("_") ? dynamic : privileges).push(name);
    if (granted !== undefined && privileges.length > 0 && line.endsWith(" WITH GRANT OPTION")) grants = true;
    const revoked = /^REVOKE (.+) ON `([^`]+)`\.\* FROM /.exec(line);
    if (revoked?.[1] !== undefined && revoked[2] !== undefined)
      restrictions[revoked[2]] = revoked[1].split(",").map((name) => name.trim());
  }
  return { privileges, dynamic, grants, restrictions };
}

function fingerprintOf({ privileges, dynamic, grants, restrictions }: Access): string {
  const limits = Object.entries(restrictions).map(([name, names]) => `${name}: ${names.toSorted().join()}`);
  const compared = dynamic.filter((name) => !later.includes(name));
  return JSON.stringify([privileges.toSorted(), compared.toSorted(), grants, limits.toSorted()]);
}
