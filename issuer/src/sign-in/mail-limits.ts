import { createHash, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";

/** What came of asking for a mail. To who asks, `sent` and `withheld` look the same. */
export type AskedMail = { readonly kind: "sent" | "withheld"; readonly id: string } | { readonly kind: "tooMany" };

const perAddress = { within: "30 seconds", most: 1 } as const;
const perAddressHour = 5;
const perSource = { unknown: 30, known: 300 } as const;

interface Counts {
  readonly address_moment: number;
  readonly address_hour: number;
  readonly source_unknown: number;
  readonly source_known: number;
  readonly app_hour: number;
  readonly is_user: boolean;
}

/**
 * Writes down a mail that is owed, and voids the one before for the same sign-in. Limits are counted from what is written, so
 * they are those of all replicas; askers of one app wait for each other a moment.
 */
export async function askForMail(
  { database, config }: App,
  { email, interactionId, source }: { readonly email: string; readonly interactionId: string; readonly source: string },
): Promise<AskedMail> {
  return database.transaction(async (rows) => {
    await rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast mails of sign-ins', 0))");
    const [counts] = await rows<Counts>(
      `SELECT
         count(*) FILTER (WHERE email = $1 AND created_at > now() - interval '${perAddress.within}')::int AS address_moment,
         count(*) FILTER (WHERE email = $1)::int AS address_hour,
         count(*) FILTER (WHERE source = $2 AND NOT is_known AND created_at > now() - interval '10 minutes')::int AS source_unknown,
         count(*) FILTER (WHERE source = $2 AND is_known AND created_at > now() - interval '10 minutes')::int AS source_known,
         count(*) FILTER (WHERE is_owed)::int AS app_hour,
         EXISTS (SELECT FROM ${s}.users WHERE users.email = $1) AS is_user
       FROM ${s}.login_tokens WHERE created_at > now() - interval '1 hour'`,
      [email, source],
    );
    if (counts === undefined) throw new Error("nothing was counted");
    if (counts.address_moment >= perAddress.most || counts.address_hour >= perAddressHour) return { kind: "tooMany" };
    if (counts.source_known >= perSource.known || counts.app_hour >= config.mailsPerHour) return { kind: "tooMany" };
    const isOwed = counts.is_user || (config.signUpOpen && counts.source_unknown < perSource.unknown);
    const id = randomUUID();
    const interaction = interactionHash(interactionId);
    await rows(`UPDATE ${s}.login_tokens SET ended_at = now() WHERE interaction_hash = $1 AND ended_at IS NULL`, [
      interaction,
    ]);
    await rows(
      `INSERT INTO ${s}.login_tokens (id, email, interaction_hash, source, is_known, is_owed, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now() + interval '15 minutes')`,
      [id, email, interaction, source, counts.is_user, isOwed],
    );
    return { kind: isOwed ? "sent" : "withheld", id };
  });
}

export function interactionHash(id: string): Buffer {
  return createHash("sha256").update(`interaction ${id}`).digest();
}
