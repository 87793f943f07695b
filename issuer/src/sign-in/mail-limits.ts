import { createHash, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import type { Asked } from "../http/exchange.ts";

/** The outcome of a request for a mail. The page is the same for `sent` and `withheld`; a mail that is withheld leaves no row. */
export type AskedMail =
  | {
      readonly kind: "sent" | "withheld";
      readonly id: string;
      /** Addresses without a user get no mail of this app for a while. It does not depend on this address. */
      readonly isCrowded: boolean;
    }
  /** The app has sent all mails of this hour, to anybody. */
  | { readonly kind: "tooMany" };

const perAddress = { within: "30 seconds", most: 1 } as const;
const perAddressHour = 5;
const perSource = { within: "10 minutes", unknown: 30, known: 300 } as const;

/** Of the mails of an hour, how many addresses without a user may have: the others are for users. */
function strangersShare(mailsPerHour: number): number {
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
const ofSource = (who: string, most: number) =>
  `(SELECT count(*) FROM (SELECT FROM ${s}.login_tokens
      WHERE source = $2 AND ${who} AND created_at > now() - interval '${perSource.within}' LIMIT ${most}) AS found) = ${most}`;
const strangersOf = (limit: string) => ofHour("NOT is_known", limit);
const usersOf = (limit: string) => ofHour("is_known", limit);
const spare = 0.9;

/** Counts end at the limit, and each finds its rows by an index: their time does not grow with the table. */
export const countMails = `
  WITH person AS (SELECT EXISTS (SELECT FROM ${s}.users WHERE users.email = $1) AS is_user)
  SELECT is_user,
    EXISTS (SELECT FROM ${s}.login_tokens WHERE email = $1 AND created_at > now() - interval '${perAddress.within}')
      OR (SELECT count(*) FROM (SELECT FROM ${s}.login_tokens
            WHERE email = $1 AND created_at > now() - interval '1 hour' LIMIT ${perAddressHour}) AS found) = ${perAddressHour}
      AS of_address,
    $2::text IS NOT NULL AND CASE WHEN is_user THEN ${ofSource("is_known", perSource.known)}
      ELSE ${ofSource("NOT is_known", perSource.unknown)} END AS of_source,
    ${strangersOf("$3")} AS strangers, ${usersOf("$4")} AS users
  FROM person`;

/**
 * Writes down a mail that is owed, and voids the one before for the same sign-in. Limits are counted from rows, so they
 * are those of all replicas: requests of one app for mails wait for each other a moment. Past a limit nothing is written.
 */
export async function askForMail(
  { database, config }: Pick<App, "database" | "config">,
  {
    email,
    interactionId,
    source,
    isShared,
  }: { readonly email: string; readonly interactionId: string } & Pick<Asked, "source" | "isShared">,
): Promise<AskedMail> {
  const most = config.mailsPerHour;
  const strangersMost = strangersShare(most);
  return database.transaction(async (rows) => {
    await rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast mails of sign-ins', 0))");
    const [counts] = await rows<Counts>(countMails, [email, isShared ? null : source, strangersMost, most]);
    if (counts === undefined) throw new Error("nothing was counted");
    if (counts.strangers + counts.users >= most) return { kind: "tooMany" };
    const isCrowded = counts.strangers >= strangersMost;
    const mayHave = counts.is_user || (config.signUpOpen && !isCrowded);
    const id = randomUUID();
    if (!mayHave || counts.of_address || counts.of_source) return { kind: "withheld", id, isCrowded };
    const interaction = interactionHash(interactionId);
    await rows(`UPDATE ${s}.login_tokens SET ended_at = now() WHERE interaction_hash = $1 AND ended_at IS NULL`, [
      interaction,
    ]);
    await rows(
      `INSERT INTO ${s}.login_tokens (id, email, interaction_hash, source, is_known, is_owed, expires_at)
       VALUES ($1, $2, $3, $4, $5, true, now() + interval '15 minutes')`,
      [id, email, interaction, source, counts.is_user],
    );
    return { kind: "sent", id, isCrowded };
  });
}

export function interactionHash(id: string): Buffer {
  return createHash("sha256").update(`interaction ${id}`).digest();
}

/**
 * Who has room for mails again: everybody, users alone, or nobody. With some to spare, so that it does not come and go with
 * each mail.
 */
export async function roomForMails({
  database,
  config,
}: Pick<App, "database" | "config">): Promise<"all" | "users" | "nobody"> {
  const most = config.mailsPerHour;
  const [counts] = await database.tokens.rows<Pick<Counts, "strangers" | "users">>(
    `SELECT ${strangersOf("$1")} AS strangers, ${usersOf("$2")} AS users`,
    [strangersShare(most), most],
  );
  if (counts === undefined || counts.strangers + counts.users >= most * spare) return "nobody";
  return counts.strangers < strangersShare(most) * spare ? "all" : "users";
}
