import { randomBytes } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { Secret, TOTP } from "otpauth";
import type { App } from "../app.ts";
import { seal, unseal } from "../sealed-text.ts";
import type { Session } from "../sign-in/session.ts";
import type { Rows } from "../store/database.ts";

const periodS = 30;
/** Failed attempts after which the user must wait 5 minutes. */
const maxFailures = 5;
const recoveryCodeCount = 10;
const isFailureOld = "coalesce(failed_at < now() - interval '5 minutes', false)";

const totpOf = (secret: string, app: App, label: string) =>
  new TOTP({
    issuer: app.config.theme?.displayName ?? "",
    label,
    secret: Secret.fromBase32(secret),
    period: periodS,
    digits: 6,
    algorithm: "SHA1",
  });

const recoveryHash = (app: App, code: string) => Buffer.from(app.keys.mac("recovery code", code), "base64url");

/** True if the user has a confirmed second factor. */
export async function hasSecondFactor({ database }: App, userId: string): Promise<boolean> {
  const rows = await database.rows(`SELECT FROM ${s}.mfa_totp WHERE user_id = $1 AND confirmed_at IS NOT NULL`, [
    userId,
  ]);
  return rows.length > 0;
}

/** Creates a secret, which is used once it is confirmed; undefined if the user already has a confirmed one. */
export async function beginSecondFactor(
  app: App,
  user: { readonly id: string; readonly email: string },
): Promise<{ readonly secret: string; readonly uri: string } | undefined> {
  const secret = new Secret({ buffer: new Uint8Array(randomBytes(20)).buffer }).base32;
  const sealed = seal(app.keys.sealingKey("totp"), secret, user.id);
  const rows = await app.database.rows(
    `INSERT INTO ${s}.mfa_totp (user_id, sealed_secret) VALUES ($1, $2)
     ON CONFLICT (user_id) DO UPDATE SET sealed_secret = excluded.sealed_secret WHERE mfa_totp.confirmed_at IS NULL
     RETURNING user_id`,
    [user.id, sealed],
  );
  return rows.length === 0 ? undefined : { secret, uri: totpOf(secret, app, user.email).toString() };
}

/**
 * Counts an attempt before its code is checked, in one statement, so concurrent attempts cannot exceed the limit.
 * Returns the sealed secret; undefined above the limit, and without a secret in this state.
 */
async function countAttempt({ database }: App, userId: string, isConfirmed: boolean): Promise<string | undefined> {
  const [row] = await database.rows<{ sealed_secret: string }>(
    `UPDATE ${s}.mfa_totp SET failed_at = now(), failures = CASE WHEN ${isFailureOld} THEN 1 ELSE failures + 1 END
     WHERE user_id = $1 AND confirmed_at IS ${isConfirmed ? "NOT " : ""}NULL AND (failures < ${maxFailures} OR ${isFailureOld})
     RETURNING sealed_secret`,
    [userId],
  );
  return row?.sealed_secret;
}

/** Checks a code. Each time step is accepted once, so an observed code cannot be reused. */
async function takeStep(app: App, rows: Rows, userId: string, code: string, sealed: string): Promise<boolean> {
  const secret = unseal(app.keys.sealingKey("totp"), sealed, userId);
  if (secret === undefined) return false;
  const delta = totpOf(secret, app, "").validate({ token: code, window: 1, timestamp: app.now() });
  if (delta === null) return false;
  const step = Math.floor(app.now() / 1_000 / periodS) + delta;
  const updated = await rows(
    `UPDATE ${s}.mfa_totp SET last_step = $2, confirmed_at = coalesce(confirmed_at, now()), failures = 0
     WHERE user_id = $1 AND last_step < $2 AND sealed_secret = $3 RETURNING user_id`,
    [userId, step, sealed],
  );
  return updated.length > 0;
}

/**
 * Confirms a new secret by its first code; returns the recovery codes, which are never shown again. From then on the
 * session counts as signed in with the second factor; other sessions of the user must sign in again.
 */
export async function confirmSecondFactor(
  app: App,
  { id, userId }: Pick<Session, "id" | "userId">,
  code: string,
): Promise<readonly string[] | undefined> {
  const sealed = await countAttempt(app, userId, false);
  if (sealed === undefined) return undefined;
  const codes = Array.from({ length: recoveryCodeCount }, () => randomBytes(8).toString("hex"));
  return app.database.transaction(async (rows) => {
    if (!(await takeStep(app, rows, userId, code, sealed))) return undefined;
    await rows(
      `UPDATE ${s}.sessions SET amr = array_remove(amr, 'otp') || ARRAY['otp', 'mfa'] WHERE id = $1 AND 'mfa' <> ALL (amr)`,
      [id],
    );
    await rows(`DELETE FROM ${s}.mfa_recovery_codes WHERE user_id = $1`, [userId]);
    for (const each of codes)
      await rows(`INSERT INTO ${s}.mfa_recovery_codes (user_id, code_hash) VALUES ($1, $2)`, [
        userId,
        recoveryHash(app, each),
      ]);
    await rows(`INSERT INTO ${s}.events (type, user_id) VALUES ('second_factor.added', $1)`, [userId]);
    return codes;
  });
}

/** Checks a code of the authenticator app, or a recovery code, which can be used once. */
export async function passesSecondFactor(app: App, userId: string, typed: string): Promise<boolean> {
  const sealed = await countAttempt(app, userId, true);
  if (sealed === undefined) return false;
  if (/^\d{6}$/.test(typed)) return takeStep(app, app.database.rows, userId, typed, sealed);
  const used = await app.database.rows(
    `WITH used AS (
       UPDATE ${s}.mfa_recovery_codes SET used_at = now()
       WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL RETURNING user_id)
     UPDATE ${s}.mfa_totp SET failures = 0 FROM used WHERE mfa_totp.user_id = used.user_id RETURNING mfa_totp.user_id`,
    [userId, recoveryHash(app, typed.toLowerCase())],
  );
  return used.length > 0;
}

/** Removes the second factor by one of its codes; false for another code, or after too many attempts. */
export async function removeSecondFactor(app: App, userId: string, typed: string): Promise<boolean> {
  if (!(await passesSecondFactor(app, userId, typed))) return false;
  await app.database.rows(
    `WITH removed AS (DELETE FROM ${s}.mfa_totp WHERE user_id = $1 RETURNING user_id),
       codes AS (DELETE FROM ${s}.mfa_recovery_codes WHERE user_id = $1)
     INSERT INTO ${s}.events (type, user_id) SELECT 'second_factor.removed', user_id FROM removed`,
    [userId],
  );
  return true;
}
