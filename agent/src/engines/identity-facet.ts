import type { Instance } from "./instance.ts";

/**
 * End users of an app, in a schema that the platform owns inside a database of the app's owner. Throws EngineRefused,
 * with a message for the owner, if the request is not possible, and EngineBusy if a retry may succeed. Every call is
 * idempotent.
 */
export interface IdentityFacet {
  /**
   * Creates the schema or migrates it to the newest version, and grants the role access to its rows. Returns the
   * version.
   */
  prepare(instance: Instance, schema: PreparedSchema, signal: AbortSignal): Promise<number>;
  /** Revokes a session and its refresh tokens; false if there is no session with this id. */
  revoke(instance: Instance, database: string, sessionId: string, signal: AbortSignal): Promise<boolean>;
  /** Deletes everything about a user. Returns the user's id, or undefined if there is no such user. */
  erase(instance: Instance, database: string, user: ErasedUser, signal: AbortSignal): Promise<string | undefined>;
  /** Erases users and revokes sessions that reappeared with restored data. Returns how many there were. */
  replay(
    instance: Instance,
    database: string,
    deleted: DeletedIdentities,
    signal: AbortSignal,
  ): Promise<{ readonly erased: number; readonly revoked: number }>;
  /** Creates a user; false if another user has the address. */
  add(
    instance: Instance,
    database: string,
    user: { readonly id: string; readonly email: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  read(instance: Instance, database: string, query: IdentityQuery, signal: AbortSignal): Promise<IdentityRows>;
}

export interface PreparedSchema {
  readonly database: string;
  readonly role: string;
  /** SCRAM-SHA-256 verifier. */
  readonly verifier: string;
}

/** Ids of users that were erased and of sessions that were revoked. */
interface DeletedIdentities {
  readonly userIds: readonly string[];
  readonly sessionIds: readonly string[];
}

/** User to erase, identified by id or by normalized address. */
export type ErasedUser = { readonly userId: string } | { readonly email: string };

export interface IdentityQuery {
  readonly table: "users" | "sessions" | "events";
  /** Id of one user; empty for all users. */
  readonly userId: string;
  /** Filter for `users` by address; empty for all. */
  readonly email: string;
  /** Cursor: key of the last row of the previous page; empty for the first page. */
  readonly after: string;
  readonly limit: number;
}

export interface IdentityRows {
  /** Rows, each a JSON object as a string. */
  readonly rows: readonly string[];
  /** Cursor of the next page; empty if no row follows. */
  readonly nextAfter: string;
}
