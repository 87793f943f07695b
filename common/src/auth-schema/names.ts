/** Schema of an app's end users inside the database of its owner. */
export const authSchema = "_mdb_auth";

/** Owner of the schema; a role without login. */
export const authOwner = "holdfast_auth_owner";

/** Role that issuers use for the users of one app. */
export function authRoleOf(appId: string): string {
  return `holdfast_auth_${appId.replaceAll("-", "").slice(-16)}`;
}

/** Normalizes an email address for storage and comparison: trimmed, in lower case. */
export function normalizedAddress(email: string): string {
  return email.trim().toLowerCase();
}
