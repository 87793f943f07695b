import { randomUUID } from "node:crypto";
import { authSchema as s, normalizedAddress } from "@holdfast/common/auth-schema/names.ts";
import { isAddress } from "../sign-in/address.ts";
import type { Rows } from "../store/database.ts";

/** Somebody as another provider knows them. */
export interface UpstreamUser {
  readonly provider: string;
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
}

export type Linked =
  | { readonly kind: "user"; readonly userId: string }
  /** Nobody is signed in: the provider has not verified the address, we have not, or no users are taken. */
  | { readonly kind: "not verified" | "mail first" | "closed" };

/**
 * The user for somebody whom a provider signed in: by issuer and subject; else by address, when both sides have verified it,
 * so that neither a provider nor an address that somebody typed there opens another's account.
 */
export async function linkUser(
  rows: Rows,
  { provider, issuer, subject, email: given, emailVerified }: UpstreamUser,
  signUpOpen: boolean,
): Promise<Linked> {
  const known = await linked(rows, issuer, subject);
  if (known !== undefined) return { kind: "user", userId: known };
  const email = normalizedAddress(given ?? "");
  if (!emailVerified || !isAddress(email)) return { kind: "not verified" };
  const [made] = signUpOpen
    ? await rows<{ id: string }>(
        `INSERT INTO ${s}.users (id, email, email_verified) VALUES ($1, $2, true) ON CONFLICT DO NOTHING RETURNING id`,
        [randomUUID(), email],
      )
    : [];
  const [user] =
    made === undefined
      ? await rows<{ id: string; email_verified: boolean }>(
          `SELECT id, email_verified FROM ${s}.users WHERE email = $1 FOR UPDATE`,
          [email],
        )
      : [{ id: made.id, email_verified: true }];
  if (user === undefined) return { kind: "closed" };
  if (!user.email_verified) return { kind: "mail first" };
  const link = await rows(
    `WITH linked AS (
       INSERT INTO ${s}.identities (id, user_id, provider, issuer, subject) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT DO NOTHING RETURNING user_id)
     INSERT INTO ${s}.events (type, user_id) SELECT 'identity.linked', user_id FROM linked RETURNING id`,
    [randomUUID(), user.id, provider, issuer, subject],
  );
  // Of two at once the first decides.
  const userId = link.length > 0 ? user.id : await linked(rows, issuer, subject);
  return userId === undefined ? { kind: "closed" } : { kind: "user", userId };
}

async function linked(rows: Rows, issuer: string, subject: string): Promise<string | undefined> {
  const [found] = await rows<{ user_id: string }>(
    `SELECT user_id FROM ${s}.identities WHERE issuer = $1 AND subject = $2`,
    [issuer, subject],
  );
  return found?.user_id;
}
