import type { Instance } from "./instance.ts";

/**
 * The end users of an app, in a schema of a database of its owner that the platform keeps. Throws EngineRefused, with words
 * for the owner, where something stands in its way, and EngineBusy where the same may work later. Each may be repeated.
 */
export interface IdentityFacet {
  /** Makes the schema or brings it to the newest version, and lets the role at its rows. Answers the version. */
  prepare(instance: Instance, wanted: PreparedSchema, signal: AbortSignal): Promise<number>;
  /** Ends a session and its refresh tokens; false when there is none of this id. */
  revoke(instance: Instance, database: string, sessionId: string, signal: AbortSignal): Promise<boolean>;
  /** Leaves nothing of a user; answers the id, or undefined when there is no such user. */
  erase(instance: Instance, database: string, user: ErasedUser, signal: AbortSignal): Promise<string | undefined>;
  /** Erases users and ends sessions that came back with older data; answers how many there were. */
  replay(
    instance: Instance,
    database: string,
    gone: GoneBefore,
    signal: AbortSignal,
  ): Promise<{ readonly erased: number; readonly revoked: number }>;
  /** Makes a user; false when another one has the address. */
  add(
    instance: Instance,
    database: string,
    user: { readonly id: string; readonly email: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  read(instance: Instance, database: string, asked: AskedRows, signal: AbortSignal): Promise<IdentityRows>;
}

export interface PreparedSchema {
  readonly database: string;
  readonly role: string;
  /** SCRAM-SHA-256 verifier. */
  readonly verifier: string;
}

/** Ids of users that were erased, and of sessions that were ended. */
interface GoneBefore {
  readonly userIds: readonly string[];
  readonly sessionIds: readonly string[];
}

/** By id, or by normalised address. */
export type ErasedUser = { readonly userId: string } | { readonly email: string };

export interface AskedRows {
  readonly table: "users" | "sessions" | "events";
  /** Empty for those of all users. */
  readonly userId: string;
  /** Of users; empty for all. */
  readonly email: string;
  /** Key of the last row of the page before; empty for the first page. */
  readonly after: string;
  readonly limit: number;
}

export interface IdentityRows {
  /** JSON objects. */
  readonly rows: readonly string[];
  /** Empty when no row follows. */
  readonly nextAfter: string;
}
