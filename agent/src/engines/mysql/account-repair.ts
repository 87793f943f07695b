import { setTimeout as sleep } from "node:timers/promises";
import type { EngineCheck, Instance } from "../engine-driver.ts";
import { killAll } from "./end-sessions.ts";
import { engineAccounts, engineThreads, platform } from "./layout.ts";
import { dropShadowingAccount, matchesClientsSql } from "./shadowing-accounts.ts";
import { accountChanges, isPlatformAccountSql, isPlatformNameSql } from "./platform-accounts.ts";
import { literal, numberOf, type Session, withSession } from "./session.ts";
import { definedBy } from "./users.ts";

interface AccountRow {
  readonly name: string;
  readonly host: string;
  readonly problem: AccountProblem;
}

type AccountProblem = "named as the platform's" | "anonymous" | "shadowing" | "other host" | "without TLS";

/** Accounts per observation. */
const batch = 100;

/** SQL expression of an account's problem: the first condition that is true; NULL if none is. */
const problemSql = `CASE
  WHEN ${isPlatformNameSql("u.user")} OR u.user IN (${[...engineAccounts, ...engineThreads].map(literal).join(", ")})
    THEN 'named as the platform''s'
  WHEN u.user = '' THEN 'anonymous'
  WHEN u.host <> '%' AND ${matchesClientsSql("u.host")}
    AND EXISTS (SELECT 1 FROM mysql.user o WHERE o.user = u.user AND o.host = '%') THEN 'shadowing'
  WHEN u.account_locked = 'Y' THEN NULL
  WHEN u.host <> '%' THEN 'other host'
  WHEN u.ssl_type = '' THEN 'without TLS' END`;

export interface AccountRepair {
  /**
   * Repairs accounts that users created in SQL. After it they have the host `%`, REQUIRE SSL, and no reserved name.
   * Resolves when the repair ends, or after 300 ms while it continues.
   */
  repair(instance: Instance): Promise<void>;
}

const waitMs = 300;
const repairTimeoutMs = 5_000;

/**
 * Runs one repair at a time, in a separate session: the changes are replicated, and in the synchronous modes their
 * commits wait for a replica.
 */
export function createAccountRepair(): AccountRepair {
  let running: Promise<void> | undefined;
  return {
    async repair(instance) {
      const work = () =>
        withSession(instance, AbortSignal.timeout(repairTimeoutMs), repairAccounts, { withinMs: repairTimeoutMs });
      running ??= accountChanges(instance.paths.data, work)
        .catch(() => undefined)
        .finally(() => {
          running = undefined;
        });
      await Promise.race([running, sleep(waitMs, undefined, { ref: false })]);
    },
  };
}

async function repairAccounts(session: Session): Promise<void> {
  const rows = await session.rows<AccountRow>(
    `SELECT name, host, problem FROM (SELECT u.user AS name, u.host AS host, ${problemSql} AS problem FROM mysql.user u
       WHERE NOT ${isPlatformAccountSql("u")}) f WHERE problem IS NOT NULL LIMIT ${batch}`,
  );
  for (const row of rows) {
    try {
      await repair(session, row);
    } catch (error) {
      // A failed repair of one account does not stop the others. An error without a number is a failed connection.
      if (numberOf(error) === 0) throw error;
    }
  }
}

async function repair(session: Session, { name, host, problem }: AccountRow): Promise<void> {
  const account = `${literal(name)}@${literal(host)}`;
  switch (problem) {
    case "named as the platform's":
      await session.rows(`DROP USER IF EXISTS ${account}`);
      // For the platform's name MySQL chooses the account of `localhost`, so no session used the dropped one.
      if (name !== platform && (await matchesClients(session, host))) await killAll(session, "user = ?", name);
      return;
    case "anonymous":
    case "shadowing":
      return dropShadowingAccount(session, name, host);
    case "other host":
      return adoptOrLock(session, name, host);
    case "without TLS":
      await session.rows(`ALTER USER ${account} REQUIRE SSL`);
  }
}

/** An account under another host becomes one of `%`, unless objects run with its privileges. */
async function adoptOrLock(session: Session, name: string, host: string): Promise<void> {
  const account = `${literal(name)}@${literal(host)}`;
  const isUsable = await matchesClients(session, host);
  if (isUsable && (await definedBy(session, name, host)).length === 0) {
    await session.rows(`RENAME USER ${account} TO ${literal(name)}@'%'`);
    await session.rows(`ALTER USER ${literal(name)}@'%' REQUIRE SSL`);
    return;
  }
  await session.rows(`ALTER USER ${account} ACCOUNT LOCK`);
  if (isUsable) await killAll(session, "user = ?", name);
}

async function matchesClients(session: Session, host: string): Promise<boolean> {
  const [row] = await session.rows<{ matches: number }>(`SELECT ${matchesClientsSql(literal(host))} AS matches`);
  return Number(row?.matches) === 1;
}

const listedAccountsMax = 5;

/** Lists accounts with a password that cannot sign in because their host is not `%`; undefined if there is none. */
export async function accountsCheck(session: Session): Promise<EngineCheck | undefined> {
  const rows = await session.rows<{ account: string }>(
    `SELECT CONCAT(u.user, '@', u.host) AS account FROM mysql.user u
     WHERE u.host <> '%' AND u.user <> '' AND u.account_locked = 'Y' AND u.authentication_string <> ''
       AND NOT ${isPlatformAccountSql("u")} ORDER BY 1 LIMIT ${listedAccountsMax}`,
  );
  if (rows.length === 0) return undefined;
  const names = rows.map(({ account }) => account).join(", ");
  const reason = `${names} cannot sign in: only accounts with the host % can. Rename these accounts to that host or drop them.`;
  return { name: "accounts", status: "degraded", reason };
}
