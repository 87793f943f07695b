import type { EngineDatabase, EngineUser, EngineUserState } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "./instance.ts";

/** Limits of a change of users or databases. */
export interface ChangeOptions {
  /**
   * Statement timeout in milliseconds, 30,000 by default. After it the engine cancels the statement and the change
   * throws EngineBusy.
   */
  readonly withinMs?: number;
}

export interface PutUserOptions extends ChangeOptions {
  /**
   * `absent`: refused if another user has this name. `present`: refused if there is no such user; the user's role does
   * not change. A user that already has the verifier counts as the result of an earlier call.
   */
  readonly expected?: "absent" | "present" | undefined;
}

/** Users inside the engine. Passwords come as verifiers only. Calls that change the same user run one at a time. */
export interface UsersFacet {
  list(instance: Instance, signal: AbortSignal): Promise<EngineUserState[]>;
  put(
    instance: Instance,
    user: EngineUser,
    signal: AbortSignal,
    options?: PutUserOptions,
  ): Promise<{ changed: boolean; role: string; replication?: boolean }>;
  drop(
    instance: Instance,
    username: string,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ existed: boolean }>;
  check(
    instance: Instance,
    username: string,
    verifier: string,
    signal: AbortSignal,
  ): Promise<{ exists: boolean; matches: boolean }>;
  /**
   * The user, read after all earlier changes of it in the engine ended; `matches` is true if it has the attribute
   * REPLICATION, unless that is unset, and the verifier, unless only the attribute is requested.
   */
  settled(
    instance: Instance,
    user: Pick<EngineUser, "username" | "verifier" | "replication">,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ exists: boolean; matches: boolean; role: string }>;
}

export interface DatabasesFacet {
  list(instance: Instance, signal: AbortSignal): Promise<EngineDatabase[]>;
  create(
    instance: Instance,
    database: NewDatabase,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ created: boolean }>;
  drop(instance: Instance, name: string, signal: AbortSignal, options?: ChangeOptions): Promise<{ existed: boolean }>;
  /**
   * The database, read after all earlier changes of it in the engine ended; `marked` is true if it was created with
   * this mark.
   */
  settled(
    instance: Instance,
    name: string,
    mark: string,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ exists: boolean; marked: boolean }>;
}

export interface NewDatabase {
  readonly name: string;
  readonly owner: string;
  /** Idempotency mark: a second `create` with the mark of an existing database succeeds. Empty for none. */
  readonly mark: string;
}

/** Collations of a library in the image, where an engine's indexes depend on their order. */
export interface CollationsFacet {
  /** Collations that users' data depend on, except collations of the engine's builtin provider. */
  uses(instance: Instance, signal: AbortSignal): Promise<CollationUse[]>;
}

export interface CollationUse {
  readonly database: string;
  readonly collation: string;
  readonly library: "libc" | "ICU";
  /**
   * Version of the collation when the data were created, and of the library in this image; empty if it is not
   * installed.
   */
  readonly recorded: string;
  readonly actual: string;
}
