import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { FieldPacket } from "mysql2";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { openByteConnection, type Value } from "./byte-connection.ts";
import { authorityFile, consoleUser, engineSocket, isReservedDatabase, secretFile } from "./layout.ts";
import { accountChanges, ensureConsoleAccount } from "./platform-accounts.ts";
import { identifier, literal, numberOf, type Session } from "./session.ts";

export type ConsoleField = Pick<FieldPacket, "name" | "columnType" | "columnLength" | "characterSet">;

export interface ConsoleSession {
  readonly id: number;
  run(sql: string): Promise<void>;
  /** Rows as the engine sends them; the engine waits while they are not read. */
  rows(sql: string, onFields: (fields: readonly ConsoleField[]) => void): AsyncIterable<readonly Value[]>;
  close(): void;
}

/** ER_ACCESS_DENIED_ERROR and ER_ACCOUNT_HAS_BEEN_LOCKED. */
const signInFailed = [1045, 3118];
const account = `${literal(consoleUser)}@'localhost'`;

/**
 * Opens a session of the console's account. Grants the account its privileges first, through `platformSession`, and
 * sets its password if it cannot sign in: the password differs between members.
 */
export async function openConsoleSession(
  instance: Instance,
  database: string,
  platformSession: Session,
  signal: AbortSignal,
): Promise<ConsoleSession> {
  const password = createHmac("sha256", await readEngineFile(secretFile(instance)))
    .update(consoleUser)
    .digest("hex");
  await accountChanges(instance.paths.data, () => ensureConsoleAccount(platformSession));
  await grantDatabases(platformSession);
  try {
    return await connectAs(instance, { password, database }, signal);
  } catch (error) {
    if (!signInFailed.includes(numberOf(error))) throw error;
  }
  const identified = `IDENTIFIED WITH caching_sha2_password BY ${literal(password)}`;
  const limits = "REQUIRE SSL WITH MAX_USER_CONNECTIONS 8 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK";
  await platformSession.rows(`ALTER USER ${account} ${identified} ${limits}`);
  return connectAs(instance, { password, database }, signal);
}

/** Grants SELECT on users' databases only. With `partial_revokes` on, MySQL does not read their names as patterns. */
async function grantDatabases(session: Session): Promise<void> {
  const granted = await session.rows<{ name: string }>("SELECT Db AS name FROM mysql.db WHERE User = ? AND Host = ?", [
    consoleUser,
    "localhost",
  ]);
  const has = new Set(granted.map(({ name }) => name));
  const all = await session.rows<{ name: string }>("SELECT schema_name AS name FROM information_schema.schemata");
  for (const { name } of all)
    if (!has.has(name) && !isReservedDatabase(name))
      await session.rows(`GRANT SELECT, SHOW VIEW ON ${identifier(name)}.* TO ${account}`);
}

async function connectAs(
  instance: Instance,
  { password, database }: { readonly password: string; readonly database: string },
  signal: AbortSignal,
): Promise<ConsoleSession> {
  // `init_connect` ends sessions without TLS. The socket has no name that the certificate could be checked against.
  const ssl = { ca: await readFile(authorityFile(instance)), rejectUnauthorized: true, verifyIdentity: false };
  const target = { socketPath: engineSocket(instance), user: consoleUser, password, database };
  const connection = await openByteConnection({ ...target, charset: "utf8mb4", ssl }, signal);
  const { rows } = await connection.query("SELECT CONNECTION_ID()");
  return {
    id: Number(rows[0]?.[0]?.toString()),
    async run(sql) {
      await connection.query(sql);
    },
    rows: (sql, onFields) => connection.stream(sql, onFields),
    close: () => connection.close(),
  };
}
