import type { Duplex } from "node:stream";
import { type DatabaseName, isSystemDatabase, type LayoutMode } from "../bind/databases.ts";
import type { Login7 } from "../protocol/login7.ts";
import { packetSizeMax, packetSizeMin } from "../protocol/packet.ts";
import { type WireFormat } from "../protocol/tds-version.ts";
import {
  doneStatus,
  tokens,
  writeCollationChange,
  writeDone,
  writeLoginAck,
  writeMessage,
  writeTextChange,
} from "../protocol/token.ts";
import { type Backend, DatabaseError, openBackend } from "../run/backend.ts";
import { findDatabase } from "../run/databases.ts";
import { databaseSettings, Session } from "../run/session.ts";
import { SqlError } from "../run/sql-error.ts";
import type { Usage } from "../run/usage.ts";
import { refuse } from "../parse/features.ts";
import type { Collation } from "../types/collation.ts";
import type { Response } from "./response.ts";

/** Server name and version in LOGINACK; drivers choose features by them. */
export const program = { name: "Microsoft SQL Server", version: [16, 0, 1_000] } as const;

export interface BackendAddress {
  readonly socketDirectory: string;
  readonly port: number;
  readonly database: string;
  readonly layoutMode: LayoutMode;
  /** Collation of the service, in which its schemas are installed. */
  readonly collation: Collation;
}

/** Opens the backend as the client's user: PostgreSQL verifies the password by SCRAM. Errors 18456, 4060 and 18452. */
export async function signIn(
  login: Login7,
  { backend: address, usage }: { readonly backend: BackendAddress; readonly usage: Usage },
  onEnd: () => void,
): Promise<Session> {
  if (login.usesIntegratedSecurity) throw refuse("Windows sign-in", 0);
  if (login.changesPassword)
    throw new SqlError(18_488, "The password cannot be changed at sign-in. Use ALTER LOGIN or the platform's API.", {
      severity: 14,
    });
  const requested = login.database.toLowerCase();
  const { layoutMode, collation } = address;
  const isKnown = requested === "" || requested === address.database || isSystemDatabase(requested);
  if (layoutMode === "single-db" && !isKnown)
    throw cannotOpen(login.database, ` The only database is "${address.database}": the layout is single-db.`);
  if (login.userName === "" || /[\0]/.test(login.userName + login.password + login.appName))
    throw loginFailed(login.userName);
  try {
    const { userName: user, password, hostName, appName } = login;
    const applicationName = `tds:${appName}`.slice(0, 63);
    let session: Session | undefined;
    const onNotification = () => session?.catalog.clear();
    const backend = await openBackend({ ...address, user, password, applicationName }, { onEnd, onNotification });
    const isNotified = await listenForDdl(backend);
    const database = await initialDatabase(backend, layoutMode === "single-db" ? "" : requested, address.database);
    if (database === undefined) {
      backend.end();
      throw cannotOpen(login.database, "");
    }
    if (layoutMode === "multi-db") await backend.script(databaseSettings(database));
    const { database: defaultDatabase } = address;
    const own = { layoutMode, collation, database, defaultDatabase, user, hostName, appName };
    session = new Session({ backend, ...own, isNotified, usage });
    return session;
  } catch (error) {
    if (error instanceof SqlError) throw error;
    if (error instanceof DatabaseError && error.code === "53300")
      throw new SqlError(17_809, "The service has reached its maximum number of connections. Try again later.", {
        severity: 20,
      });
    if (error instanceof DatabaseError && error.code === "57P03")
      throw new SqlError(18_401, "The database is starting. Try again later.", { severity: 14 });
    throw loginFailed(login.userName, error);
  }
}

/** The database of a new session; undefined if there is none with the requested name. */
async function initialDatabase(
  backend: Backend,
  requested: string,
  defaultDatabase: string,
): Promise<DatabaseName | undefined> {
  if (requested === "" || requested === defaultDatabase) return { folded: defaultDatabase, spelling: defaultDatabase };
  return findDatabase(requested, backend);
}

function cannotOpen(name: string, detail: string): SqlError {
  const message = `Cannot open database "${name}" requested by the login.${detail}`;
  return new SqlError(4_060, message, { severity: 11 });
}

/** False on a replica, where PostgreSQL has no notifications. */
async function listenForDdl(backend: Backend): Promise<boolean> {
  try {
    await backend.script("LISTEN holdfast_tsql_ddl");
    return true;
  } catch (error) {
    if (error instanceof DatabaseError && error.code === "25006") return false;
    backend.end();
    throw error;
  }
}

function loginFailed(user: string, cause?: unknown): SqlError {
  const error = new SqlError(18_456, `Login failed for user '${user.slice(0, 128)}'.`, { severity: 14 });
  error.cause = cause;
  return error;
}

/** Sends LOGINACK with the ENVCHANGE tokens that drivers expect. */
export async function acceptSignIn(
  response: Response,
  format: WireFormat,
  login: Login7,
  database: string,
): Promise<void> {
  const writer = response.tokens;
  const size = Math.min(packetSizeMax, Math.max(packetSizeMin, login.packetSize === 0 ? 4_096 : login.packetSize));
  writeTextChange(writer, "database", database, "master");
  writeMessage(writer, format, {
    number: 5_701,
    state: 2,
    severity: 0,
    message: `Changed database context to '${database}'.`,
    line: 1,
  });
  writeCollationChange(writer, format);
  writeTextChange(writer, "language", "us_english", "");
  writeLoginAck(writer, format.version, program);
  writeTextChange(writer, "packetSize", String(size), "4096");
  writeDone(writer, format, tokens.done, { status: doneStatus.final });
  await response.end();
  response.packetSize = size;
}

/** Sends the error and closes the connection. */
export async function refuseSignIn(
  response: Response,
  format: WireFormat,
  error: SqlError,
  stream: Duplex,
): Promise<void> {
  const { number, state, severity, message } = error;
  writeMessage(response.tokens, format, { number, state, severity, message, line: 1 });
  writeDone(response.tokens, format, tokens.done, { status: doneStatus.error });
  await response.end();
  stream.end();
}
