import { createHash, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import { capacityOf, decideMail, type MailCounts, type MailRequester, newUsersShare } from "./mail-shares.ts";
import { browserSources } from "./signed-in-browser.ts";

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

const repeatInterval = "30 seconds";
/** Maximum rows of one address that are read: more than the mails that limits permit for an address in an hour. */
const maxAddressRows = 1_000;
const perSource = { within: "10 minutes", unknown: 30, known: 300 } as const;

const ofHour = (condition: string, limit: string) =>
  `(SELECT count(*)::int FROM (SELECT FROM ${s}.login_tokens
      WHERE ${condition} AND created_at > now() - interval '1 hour' LIMIT ${limit}::int) AS found)`;
const ofSource = (condition: string, max: number) =>
  `(SELECT count(*) FROM (SELECT FROM ${s}.login_tokens
      WHERE source = $2 AND ${condition} AND created_at > now() - interval '${perSource.within}' LIMIT ${max}) AS found) = ${max}`;
const isOfBrowser = `source LIKE '${browserSources}%'`;
const countsOfApp = (maxNewUsers: string, max: string) => `
    ${ofHour("is_owed AND NOT is_known", maxNewUsers)} AS new_addresses,
    ${ofHour(`is_owed AND is_known AND NOT ${isOfBrowser}`, max)} AS users,
    ${ofHour(`is_owed AND is_known AND ${isOfBrowser}`, max)} AS browsers`;

/** Each count stops at its limit and uses an index, so its time does not grow with the table. */
export const countMails = `
  WITH addressee AS (SELECT EXISTS (SELECT FROM ${s}.users WHERE users.email = $1) AS is_user),
    to_address AS MATERIALIZED (
      SELECT source, created_at FROM ${s}.login_tokens
      WHERE email = $1 AND created_at > now() - interval '1 hour' LIMIT ${maxAddressRows})
  SELECT is_user,
    EXISTS (SELECT FROM to_address WHERE source = $2 AND created_at > now() - interval '${repeatInterval}') AS is_repeated,
    $5::boolean AND CASE WHEN is_user THEN ${ofSource("is_known", perSource.known)}
      ELSE ${ofSource("NOT is_known", perSource.unknown)} END AS of_source,
    ${ofHour("source = $2 AND NOT is_known", "$3")} AS own_new_addresses,
    ${ofHour("source = $2 AND is_known", "$4")} AS own_users,
    (SELECT count(*)::int FROM to_address WHERE source = $2) AS own_to_address,
    (SELECT count(*)::int FROM to_address WHERE NOT ${isOfBrowser}) AS to_address,
    ${countsOfApp("$3", "$4")}
  FROM addressee`;

/**
 * Inserts a mail to send, and invalidates the previous one of the same sign-in. Limits are counted in rows and so apply
 * to all replicas; an advisory lock serializes the requests of an app. Above a limit nothing is inserted.
 */
export async function requestMail(
  { database, config }: Pick<App, "database" | "config">,
  {
    email,
    interactionId,
    requester,
  }: { readonly email: string; readonly interactionId: string; readonly requester: MailRequester },
): Promise<MailRequestOutcome> {
  const max = config.mailsPerHour;
  const maxNewUsers = newUsersShare(max);
  const { source, kind } = requester;
  return database.transaction(async (rows) => {
    await rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast mails of sign-ins', 0))");
    const [counts] = await rows<MailCounts>(countMails, [email, source, maxNewUsers, max, kind === "network"]);
    if (counts === undefined) throw new Error("the counts are missing");
    const decision = decideMail(counts, requester, config);
    if (decision === "tooMany") return { kind: decision };
    const newUsersLimited = counts.new_addresses >= maxNewUsers;
    const id = randomUUID();
    if (decision === "withheld") return { kind: decision, id, newUsersLimited };
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

/** Mail capacity of an app, by its mails of the last hour. */
export async function mailCapacity({
  database,
  config,
}: Pick<App, "database" | "config">): Promise<"all" | "users" | "known-browsers"> {
  const max = config.mailsPerHour;
  const [counts] = await database.tokens.rows<Pick<MailCounts, "new_addresses" | "users" | "browsers">>(
    `SELECT ${countsOfApp("$1", "$2")}`,
    [newUsersShare(max), max],
  );
  return counts === undefined ? "known-browsers" : capacityOf(counts, max);
}
