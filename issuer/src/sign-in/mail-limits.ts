import { createHash, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import type { IncomingRequest } from "../http/messages.ts";

/** Outcome of a request for a mail. The page is the same for `sent` and `withheld`; a withheld mail leaves no row. */
export type MailRequestOutcome =
  | {
      readonly kind: "sent" | "withheld";
      readonly id: string;
      /** True if addresses without a user currently get no mail of this app, whether this address has a user or not. */
      readonly newUsersLimited: boolean;
    }
  /** The app has reached its hourly limit. */
  | { readonly kind: "tooMany" };

const perAddress = { within: "30 seconds", max: 1 } as const;
const perAddressHour = 5;
const perSource = { within: "10 minutes", unknown: 30, known: 300 } as const;

/** Mails in an hour for addresses without a user; the others are reserved for users. */
function newUsersShare(mailsPerHour: number): number {
  return Math.ceil(mailsPerHour / 2);
}

interface Counts {
  readonly of_address: boolean;
  readonly of_source: boolean;
  readonly strangers: number;
  readonly users: number;
  readonly is_user: boolean;
}

const ofHour = (who: string, limit: string) =>
  `(SELECT count(*)::int FROM (SELECT FROM ${s}.login_tokens
      WHERE is_owed AND ${who} AND created_at > now() - interval '1 hour' LIMIT ${limit}::int) AS found)`;
const ofSource = (who: string, max: number) =>
  `(SELECT count(*) FROM (SELECT FROM ${s}.login_tokens
      WHERE source = $2 AND ${who} AND created_at > now() - interval '${perSource.within}' LIMIT ${max}) AS found) = ${max}`;
const countOfNewUsers = (limit: string) => ofHour("NOT is_known", limit);
const countOfUsers = (limit: string) => ofHour("is_known", limit);
const reopenShare = 0.9;

/** Each count stops at its limit and uses an index, so its time does not grow with the table. */
export const countMails = `
  WITH person AS (SELECT EXISTS (SELECT FROM ${s}.users WHERE users.email = $1) AS is_user)
  SELECT is_user,
    EXISTS (SELECT FROM ${s}.login_tokens WHERE email = $1 AND created_at > now() - interval '${perAddress.within}')
      OR (SELECT count(*) FROM (SELECT FROM ${s}.login_tokens
            WHERE email = $1 AND created_at > now() - interval '1 hour' LIMIT ${perAddressHour}) AS found) = ${perAddressHour}
      AS of_address,
    $2::text IS NOT NULL AND CASE WHEN is_user THEN ${ofSource("is_known", perSource.known)}
      ELSE ${ofSource("NOT is_known", perSource.unknown)} END AS of_source,
    ${countOfNewUsers("$3")} AS strangers, ${countOfUsers("$4")} AS users
  FROM person`;

/**
 * Inserts a mail to send, and invalidates the previous one of the same sign-in. Limits are counted in rows and so apply
 * to all replicas; an advisory lock serializes the requests of an app. Above a limit nothing is inserted.
 */
export async function requestMail(
  { database, config }: Pick<App, "database" | "config">,
  {
    email,
    interactionId,
    source,
    isSharedSource: isShared,
  }: { readonly email: string; readonly interactionId: string } & Pick<IncomingRequest, "source" | "isSharedSource">,
): Promise<MailRequestOutcome> {
  const max = config.mailsPerHour;
  const newUsersMax = newUsersShare(max);
  return database.transaction(async (rows) => {
    await rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast mails of sign-ins', 0))");
    const [counts] = await rows<Counts>(countMails, [email, isShared ? null : source, newUsersMax, max]);
    if (counts === undefined) throw new Error("the counts are missing");
    if (counts.strangers + counts.users >= max) return { kind: "tooMany" };
    const newUsersLimited = counts.strangers >= newUsersMax;
    const isAllowed = counts.is_user || (config.signUpOpen && !newUsersLimited);
    const id = randomUUID();
    if (!isAllowed || counts.of_address || counts.of_source) return { kind: "withheld", id, newUsersLimited };
    const interaction = interactionHash(interactionId);
    await rows(`UPDATE ${s}.login_tokens SET ended_at = now() WHERE interaction_hash = $1 AND ended_at IS NULL`, [
      interaction,
    ]);
    await rows(
      `INSERT INTO ${s}.login_tokens (id, email, interaction_hash, source, is_known, is_owed, expires_at)
       VALUES ($1, $2, $3, $4, $5, true, now() + interval '15 minutes')`,
      [id, email, interaction, source, counts.is_user],
    );
    return { kind: "sent", id, newUsersLimited };
  });
}

export function interactionHash(id: string): Buffer {
  return createHash("sha256").update(`interaction ${id}`).digest();
}

/**
 * Mail capacity of an app: for all addresses, only for users, or for nobody. A margin below the limit prevents
 * oscillation.
 */
export async function mailCapacity({
  database,
  config,
}: Pick<App, "database" | "config">): Promise<"all" | "users" | "nobody"> {
  const max = config.mailsPerHour;
  const [counts] = await database.tokens.rows<Pick<Counts, "strangers" | "users">>(
    `SELECT ${countOfNewUsers("$1")} AS strangers, ${countOfUsers("$2")} AS users`,
    [newUsersShare(max), max],
  );
  if (counts === undefined || counts.strangers + counts.users >= max * reopenShare) return "nobody";
  return counts.strangers < newUsersShare(max) * reopenShare ? "all" : "users";
}
