import type { EngineDatabase, EngineUser, EngineUserState } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "./instance.ts";

/** How far a change of users or databases may go. */
export interface ChangeOptions {
  /** Bound of one statement; past it the engine ends it by itself, and the change throws EngineBusy. 30 s when not given. */
  readonly withinMs?: number;
}

export interface PutUserOptions extends ChangeOptions {
  /**
   * `absent` throws a refusal when there is another user of this name; `present` throws one when there is none, and has the
   * user keep its role. A user that has the verifier already is what an earlier call came to.
   */
  readonly expected?: "absent" | "present" | undefined;
}

/** Users inside the engine. Passwords come as verifiers only. Calls that change one and the same user take turns. */
export interface UsersFacet {
  list(instance: Instance, signal: AbortSignal): Promise<EngineUserState[]>;
  put(
    instance: Instance,
    user: EngineUser,
    signal: AbortSignal,
    options?: PutUserOptions,
  ): Promise<{ changed: boolean; role: string }>;
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
  /** The user once nothing of earlier changes of it is left in the engine; `verifier` says whether it has this one. */
  settled(
    instance: Instance,
    username: string,
    verifier: string,
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
  /** The database once nothing of earlier changes of it is left in the engine; `marked` says whether it was made with this mark. */
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
  /** A database that was made with it is created by the same again. Empty: none is known again. */
  readonly mark: string;
}

/** Orders of text that come from a library of the image, where an engine's data depends on one. */
export interface CollationsFacet {
  /** Every one that data of users depends on; those that come with the engine itself are left out. */
  uses(instance: Instance, signal: AbortSignal): Promise<CollationUse[]>;
}

export interface CollationUse {
  readonly database: string;
  readonly collation: string;
  readonly library: "libc" | "ICU";
  /** Version of the library's order when the data was made, and of the one that is here; empty when it is gone. */
  readonly recorded: string;
  readonly actual: string;
}
