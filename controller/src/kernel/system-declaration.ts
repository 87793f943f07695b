import type { Setting, ValuesOf } from "@holdfast/common/config.ts";
import type { Kernel, KernelDeps } from "./kernel.ts";
import type { EventDefinition } from "./outbox/event-definition.ts";
import type { System } from "./system.ts";

type Events = Readonly<Record<string, EventDefinition>>;
type Settings = Readonly<Record<string, Setting<unknown>>>;
type Parts = Parameters<KernelDeps["prepare"]>[0];
type Prepare<Below, S> = (parts: Parts, given: Below, settings: S, signal: AbortSignal) => Promise<void>;
type Seams<Below, S, G> = (kernel: Kernel, settings: S, below: () => Below) => G;
type Open<Below, S, G> = (kernel: Kernel, below: Below, settings: S) => System<G> | Promise<System<G>>;

/** An area of scopes, as `services` is that of `services:read`. */
export interface ScopeArea {
  readonly rights: readonly string[];
  /** The least role that has all rights of the area; the roles below it have `read` only. */
  readonly wholeFrom?: "developer" | "admin" | "owner";
}

/** The declaration of a system, readable without a kernel: the pages of settings and of events are printed from it. */
export interface SystemDeclaration<Below = never, Gives = unknown, Ahead = unknown, E extends Events = Events> {
  readonly name: string;
  readonly settings?: Settings;
  /** Types of events that it makes, by their names. */
  readonly events?: E;
  /** Areas of the scopes that its RPCs need, by their names. */
  readonly scopes?: Readonly<Record<string, ScopeArea>>;
  /** Kind of the objects that the audit log names when a change is refused, by the full name of the RPC service. */
  readonly audited?: Readonly<Record<string, string>>;
  /** Runs before any object is read, with the parts common to all systems. */
  readonly prepare?: Prepare<Below, never>;
  /**
   * Parts that systems before it in the list need, made of the kernel before any system is opened. `below` has the
   * parts that systems gave by the time of the call.
   */
  readonly seams?: Seams<Below, never, Ahead>;
  /**
   * Makes the system out of the kernel, of the parts that other systems give, and of its own settings. Absent: it is
   * still to come.
   */
  readonly open?: Open<Below, never, Gives>;
}

/** Erases the types of its settings, after the compiler has checked that its functions take the declared ones. */
export function declareSystem<
  Below,
  Gives = unknown,
  Ahead = unknown,
  const E extends Events = Record<never, never>,
  S extends Settings = Record<never, never>,
>(declaration: {
  readonly name: string;
  readonly settings?: S;
  readonly events?: E;
  readonly scopes?: Readonly<Record<string, ScopeArea>>;
  /** Kind of the objects that the audit log names when a change is refused, by the full name of the RPC service. */
  readonly audited?: Readonly<Record<string, string>>;
  readonly prepare?: Prepare<Below, ValuesOf<S>>;
  readonly seams?: Seams<Below, ValuesOf<S>, Ahead>;
  readonly open?: Open<Below, ValuesOf<S>, Gives>;
}): SystemDeclaration<Below, Gives, Ahead, E> {
  return declaration;
}

/** All members of all of them; throws when two have one of the same name. */
export function gathered<T>(parts: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all: Record<string, T> = {};
  for (const [name, value] of parts.flatMap(Object.entries<T>)) {
    if (Object.hasOwn(all, name)) throw new Error(`two systems declare ${name}`);
    all[name] = value;
  }
  return all;
}
