import { randomUUID } from "node:crypto";
import { authSchema as s, normalizedAddress } from "@holdfast/common/auth-schema/names.ts";
import { isEmailAddress } from "../sign-in/mail-sender.ts";
import type { Rows } from "../store/database.ts";

/** A user as reported by an upstream provider. */
export interface UpstreamUser {
  readonly provider: string;
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
}

export type Linked =
  | { readonly kind: "user"; readonly userId: string }
  /** No user: the provider or the existing user has not verified the address, or sign-up is closed. */
  | { readonly kind: "not verified" | "mail first" | "closed" };

/**
 * Finds or creates the user for an upstream sign-in: by issuer and subject, else by address if both sides have verified
 * it. So neither a provider nor an unverified address gives access to another user's account.
 */
export async function linkUser(
  rows: Rows,
  { provider, issuer, subject, email: providerEmail, emailVerified }: UpstreamUser,
  signUpOpen: boolean,
): Promise<Linked> {
  const linkedUserId = await linkedUser(rows, issuer, subject);
  if (linkedUserId !== undefined) return { kind: "user", userId: linkedUserId };
  const email = normalizedAddress(providerEmail ?? "");
  if (!emailVerified || !isEmailAddress(email)) return { kind: "not verified" };
  const [created] = signUpOpen
    ? await rows<{ id: string }>(
        `INSERT INTO ${s}.users (id, email, email_verified) VALUES ($1, $2, true) ON CONFLICT DO NOTHING RETURNING id`,
        [randomUUID(), email],
      )
    : [];
  const [user] =
    created === undefined
      ? await rows<{ id: string; email_verified: boolean }>(
          `SELECT id, email_verified FROM ${s}.users WHERE email = $1 FOR UPDATE`,
          [email],
        )
      : [{ id: created.id, email_verified: true }];
  if (user === undefined) return { kind: "closed" };
  if (!user.email_verified) return { kind: "mail first" };
  const link = await rows(
    `WITH linked AS (
       INSERT INTO ${s}.identities (id, user_id, provider, issuer, subject) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT DO NOTHING RETURNING user_id)
     INSERT INTO ${s}.events (type, user_id) SELECT 'identity.linked', user_id FROM linked RETURNING id`,
    [randomUUID(), user.id, provider, issuer, subject],
  );
  // If two sign-ins are concurrent, the first one decides.
  const userId = link.length > 0 ? user.id : await linkedUser(rows, issuer, subject);
  return userId === undefined ? { kind: "closed" } : { kind: "user", userId };
}

async function linkedUser(rows: Rows, issuer: string, subject: string): Promise<string | undefined> {
  const [found] = await rows<{ user_id: string }>(
    `SELECT user_id FROM ${s}.identities WHERE issuer = $1 AND subject = $2`,
    [issuer, subject],
  );
  return found?.user_id;
}
