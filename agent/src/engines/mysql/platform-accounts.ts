import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import { endAll } from "./end-sessions.ts";
import { consoleUser, engineAccounts, platform, platformAccounts } from "./layout.ts";
import { literal, type Session } from "./session.ts";

/**
 * Serializes changes of the platform's accounts, by data directory: the account repair must not drop an account that is
 * being created. An abort of the work releases the mutex.
 */
export const accountChanges = createKeyedMutex();

const allNames = platformAccounts.map(({ pattern }) => pattern).join("|");

/** SQL condition: this expression is the exact name of an account of the platform. */
export function isPlatformNameSql(name: string): string {
  return matchesSql(name, allNames);
}

/** SQL condition: the platform or the engine created this account of `mysql.user`. */
export function isPlatformAccountSql(table: string): string {
  const [name, host] = [`${table}.user`, `${table}.host`];
  const ofPlatform = platformAccounts.map(
    (account) => `(${matchesSql(name, account.pattern)} AND ${host} = ${literal(account.host)})`,
  );
  const ofEngine = `(${name} IN (${engineAccounts.map(literal).join(", ")}) AND ${host} = 'localhost')`;
  return `(${ofEngine} OR ((${ofPlatform.join(" OR ")}) AND ${isProtectedSql(table)}))`;
}

/** SQL condition: the account has SYSTEM_USER, which no user has or grants, so only the platform can change it. */
function isProtectedSql(table: string): string {
  return `EXISTS (SELECT 1 FROM mysql.global_grants g
    WHERE g.user = ${table}.user AND g.host = ${table}.host AND g.priv = 'SYSTEM_USER')`;
}

/** SQL condition: a name matches a pattern. A comparison by `=` would ignore spaces at the end of the name. */
function matchesSql(expression: string, pattern: string): string {
  return `REGEXP_LIKE(${expression}, ${literal(`^(?:${pattern})\\z`)}, 'c')`;
}

/** Statements that give an account of a member its privileges. SYSTEM_USER comes first: it protects the account. */
const memberGrants = [
  "SYSTEM_USER ON *.*",
  "REPLICATION SLAVE, REPLICATION CLIENT ON *.*",
  // CONNECTION_ADMIN: `init_connect` does not apply to it.
  "BACKUP_ADMIN, CONNECTION_ADMIN ON *.*",
  "SELECT ON performance_schema.replication_connection_status",
];
const memberLimits = "REQUIRE X509 WITH MAX_USER_CONNECTIONS 1000 PASSWORD EXPIRE NEVER";

interface MemberAccount {
  readonly name: string;
  readonly password: string;
  readonly isLocked: boolean;
}

export interface StoredAccount {
  readonly name: string;
  readonly isLocked: boolean;
  /** False for an account that users created under a name of the platform, and for an incomplete one. */
  readonly isOwn: boolean;
}

/** Reads the accounts of members, including accounts of these names that users created. */
export async function storedMemberAccounts(session: Session): Promise<StoredAccount[]> {
  const rows = await session.rows<{ name: string; locked: string; own: number }>(
    `SELECT u.user AS name, u.account_locked AS locked, ${isPlatformAccountSql("u")} AS own FROM mysql.user u
     WHERE ${isPlatformNameSql("u.user")} AND u.user <> ${literal(platform)}`,
  );
  return rows.map(({ name, locked, own }) => ({ name, isLocked: locked === "Y", isOwn: Number(own) === 1 }));
}

/**
 * Creates accounts of members. An existing account of the name is dropped first and its sessions end, since a user may
 * have created it and new privileges apply to open sessions.
 */
export async function createMemberAccounts(session: Session, accounts: readonly MemberAccount[]): Promise<void> {
  if (accounts.length === 0) return;
  await withoutAccountChanges(session, async () => {
    for (const { name, password, isLocked } of accounts) {
      await dropAccounts(session, name);
      const user = `${literal(name)}@'%'`;
      const identified = `IDENTIFIED WITH caching_sha2_password BY ${literal(password)}`;
      await session.rows(`CREATE USER ${user} ${identified} ${memberLimits} ACCOUNT LOCK`);
      for (const grant of memberGrants) await session.rows(`GRANT ${grant} TO ${user}`);
      if (!isLocked) await session.rows(`ALTER USER ${user} ACCOUNT UNLOCK`);
    }
  });
}

/** Creates the console's account, locked. Replaces an account of the name that the platform did not create. */
export async function ensureConsoleAccount(session: Session): Promise<void> {
  const user = `${literal(consoleUser)}@'localhost'`;
  const own = await session.rows(
    `SELECT 1 FROM mysql.user u WHERE u.user = ${literal(consoleUser)} AND ${isPlatformAccountSql("u")}`,
  );
  if (own.length > 0) return;
  await withoutAccountChanges(session, async () => {
    await dropAccounts(session, consoleUser);
    await session.rows(`CREATE USER ${user} ACCOUNT LOCK`);
    await session.rows(`GRANT SYSTEM_USER ON *.* TO ${user}`);
  });
}

/** Drops the accounts of a member's name at every host, and returns once all their sessions have ended. */
export async function dropAccounts(session: Session, name: string): Promise<void> {
  const rows = await session.rows<{ host: string }>(
    `SELECT host FROM mysql.user WHERE ${matchesSql("user", escaped(name))}`,
  );
  // A replica may have the account at `%` if this member lacks it.
  const hosts = new Set(["%", ...rows.map(({ host }) => host)]);
  for (const host of hosts) await session.rows(`DROP USER IF EXISTS ${literal(name)}@${literal(host)}`);
  await endAll(session, matchesSql("user", escaped(name)));
}

function escaped(name: string): string {
  return name.replaceAll(/[^0-9A-Za-z_]/g, String.raw`\$&`);
}

/**
 * Runs the work while users can change no account: between its creation and its protection they could change a new
 * account of the platform.
 */
async function withoutAccountChanges(session: Session, work: () => Promise<void>): Promise<void> {
  const [row] = await session.rows<{ refused: number }>("SELECT @@GLOBAL.read_only AS refused");
  // In read-only mode the engine refuses every change of users.
  if (Number(row?.refused) === 1) return work();
  await session.rows("LOCK INSTANCE FOR BACKUP");
  try {
    await work();
  } finally {
    await session.rows("UNLOCK INSTANCE");
  }
}
