import { createHash, randomBytes, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import { type IncomingRequest, setCookie } from "../http/messages.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import type { Rows } from "../store/database.ts";

/** A session of a user in one browser. */
export interface Session {
  readonly id: string;
  readonly userId: string;
  /** Time of the sign-in, cut to seconds as in tokens. */
  readonly authTime: Date;
  readonly createdAt: Date;
}

const cookie = "__Host-session";
const lifetimeDays = 90;

const hashOf = (secret: string) => createHash("sha256").update(secret).digest();

interface SessionRow {
  readonly id: string;
  readonly user_id: string;
  readonly auth_time: Date;
  readonly created_at: Date;
  readonly lacks_second_factor: boolean;
}

async function readSession({ database }: App, { cookies }: IncomingRequest): Promise<SessionRow | undefined> {
  const secret = cookies.get(cookie);
  if (secret === undefined || secret.length > 64) return undefined;
  const [row] = await database.rows<SessionRow>(
    `UPDATE ${s}.sessions SET last_seen_at = now()
     WHERE secret_hash = $1 AND revoked_at IS NULL AND expires_at > now()
     RETURNING id, user_id, auth_time, created_at, 'mfa' <> ALL (amr) AND EXISTS (SELECT FROM ${s}.mfa_totp AS factor
       WHERE factor.user_id = sessions.user_id AND factor.confirmed_at IS NOT NULL) AS lacks_second_factor`,
    [hashOf(secret)],
  );
  return row;
}

/** Id of the session to end at a sign-out. The session may be older than the user's second factor. */
export async function openSessionId(app: App, incoming: IncomingRequest): Promise<string | undefined> {
  return (await readSession(app, incoming))?.id;
}

/**
 * The session of the browser; undefined without one. A session that began before its user added a second factor does
 * not count: the user signs in again.
 */
export async function currentSession(app: App, incoming: IncomingRequest): Promise<Session | undefined> {
  const row = await readSession(app, incoming);
  if (row === undefined || row.lacks_second_factor) return undefined;
  return { id: row.id, userId: row.user_id, authTime: row.auth_time, createdAt: row.created_at };
}

/**
 * True if the session belongs to the hinted user and is recent enough: within `max_age`, or newer than `requestedAt`,
 * the time of the client's request in milliseconds since 1970, which a forced sign-in requires.
 */
export function satisfies(
  { userId, authTime, createdAt }: Session,
  { prompt, maxAgeS }: Pick<AuthorizeRequest, "prompt" | "maxAgeS">,
  hint: { readonly userId?: string | undefined; readonly now: number; readonly requestedAt?: number },
): boolean {
  if (hint.userId !== undefined && hint.userId !== userId) return false;
  if (hint.requestedAt !== undefined && createdAt.getTime() > hint.requestedAt) return true;
  if (prompt === "login") return false;
  return maxAgeS === undefined || hint.now - authTime.getTime() <= maxAgeS * 1_000;
}

/** Creates a session and its cookie. A previous session of another user in this browser is revoked. */
export async function openSession(
  rows: Rows,
  { cookies, source, userAgent }: IncomingRequest,
  userId: string,
  amr: readonly string[],
): Promise<Session & { readonly cookie: string }> {
  const secret = randomBytes(32).toString("base64url");
  const previous = cookies.get(cookie);
  if (previous !== undefined)
    await rows(
      `UPDATE ${s}.sessions SET revoked_at = now() WHERE secret_hash = $1 AND revoked_at IS NULL AND user_id <> $2`,
      [hashOf(previous), userId],
    );
  const [row] = await rows<{ id: string; auth_time: Date; created_at: Date }>(
    `INSERT INTO ${s}.sessions (id, user_id, secret_hash, auth_time, amr, ip, user_agent, expires_at)
     VALUES ($1, $2, $3, date_trunc('second', now()), $4, $5, $6, now() + interval '${lifetimeDays} days') RETURNING id, auth_time, created_at`,
    [randomUUID(), userId, hashOf(secret), amr, source, userAgent],
  );
  if (row === undefined) throw new Error("no session was created");
  return {
    id: row.id,
    userId,
    authTime: row.auth_time,
    createdAt: row.created_at,
    cookie: setCookie(cookie, secret, lifetimeDays * 86_400),
  };
}

/** Revokes a session with its refresh tokens. */
export async function endSession({ database }: App, id: string): Promise<void> {
  await database.rows(
    `WITH ended AS (UPDATE ${s}.sessions SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id, user_id),
       families AS (UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now()) WHERE session_id = $1)
     INSERT INTO ${s}.events (type, user_id) SELECT 'session.ended', user_id FROM ended`,
    [id],
  );
}

export const clearedSessionCookie = (): string => setCookie(cookie, "", 0);
