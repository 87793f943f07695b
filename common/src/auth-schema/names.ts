/** Schema of an app's end users inside the database of its owner. */
export const authSchema = "_mdb_auth";

/** Owns the schema; nobody signs in as it. */
export const authOwner = "holdfast_auth_owner";

/** The role that issuers reach the users of one app by. */
export function authRoleOf(appId: string): string {
  return `holdfast_auth_${appId.replaceAll("-", "").slice(-16)}`;
}

/** An address as it is stored and compared: without space around it, in lower case. */
export function normalizedAddress(email: string): string {
  return email.trim().toLowerCase();
}
