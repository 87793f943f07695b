import { isReservedUser } from "./layout.ts";
import { literal, type Session } from "./session.ts";

/** Accounts that users created in SQL without REQUIRE SSL get it. Until then `init_connect` ends their sessions. */
export async function repairAccounts(session: Session): Promise<void> {
  const rows = await session.rows<{ name: string; host: string }>(
    "SELECT user AS name, host FROM mysql.user WHERE ssl_type = '' AND account_locked = 'N' LIMIT 100",
  );
  for (const { name, host } of rows)
    if (!isReservedUser(name)) await session.rows(`ALTER USER ${literal(name)}@${literal(host)} REQUIRE SSL`);
}
