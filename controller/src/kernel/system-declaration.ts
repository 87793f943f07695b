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

/** An area of scopes, such as `services` in `services:read`. */
export interface ScopeArea {
  readonly rights: readonly string[];
  /** The lowest role with all rights of the area; lower roles have `read` only. */
  readonly completeFrom?: "developer" | "admin" | "owner";
}

/** The declaration of a system. It needs no kernel: the pages of settings and events are generated from it. */
export interface SystemDeclaration<Below = never, Gives = unknown, Ahead = unknown, E extends Events = Events> {
  readonly name: string;
  readonly settings?: Settings;
  /** Types of events that it emits, by name. */
  readonly events?: E;
  /** Areas of the scopes that its RPCs need, by name. */
  readonly scopes?: Readonly<Record<string, ScopeArea>>;
  /** Object kind in the audit entry of a refused change, by the full name of the RPC service. */
  readonly audited?: Readonly<Record<string, string>>;
  /** Runs before any object is read, with the parts that all systems share. */
  readonly prepare?: Prepare<Below, never>;
  /**
   * Creates parts that systems before it in the list need, before any system is opened. `below` has the parts that
   * systems have given by the time of the call.
   */
  readonly seams?: Seams<Below, never, Ahead>;
  /** Opens the system from the kernel, the parts of other systems and its own settings. Absent: not implemented yet. */
  readonly open?: Open<Below, never, Gives>;
}

/** Erases the type of the settings, after the compiler has checked the declaration's functions against it. */
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
  /** Object kind in the audit entry of a refused change, by the full name of the RPC service. */
  readonly audited?: Readonly<Record<string, string>>;
  readonly prepare?: Prepare<Below, ValuesOf<S>>;
  readonly seams?: Seams<Below, ValuesOf<S>, Ahead>;
  readonly open?: Open<Below, ValuesOf<S>, Gives>;
}): SystemDeclaration<Below, Gives, Ahead, E> {
  return declaration;
}

/** Merges the records; throws when two have a member of the same name. */
export function mergeUnique<T>(parts: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all: Record<string, T> = {};
  for (const [name, value] of parts.flatMap(Object.entries<T>)) {
    if (Object.hasOwn(all, name)) throw new Error(`two systems declare ${name}`);
    all[name] = value;
  }
  return all;
}

/** Opens systems in the order of the list, each with the common parts and those of the systems before it. */
export async function openSystems<Below extends object>(
  kernel: Kernel,
  declarations: readonly SystemDeclaration<Below>[],
  { initial, settings }: { readonly initial: Partial<Below>; readonly settings: unknown },
): Promise<{ readonly systems: readonly System[]; readonly below: Below }> {
  const below: Record<string, unknown> = { ...initial };
  const own = settings as never;
  function provide(name: string, parts: unknown): void {
    for (const [part, value] of Object.entries(parts ?? {})) {
      if (Object.hasOwn(below, part)) throw new Error(`${name} gives ${part}, which another system gives`);
      below[part] = value;
    }
  }
  for (const { name, seams } of declarations)
    provide(
      name,
      seams?.(kernel, own, () => below as Below),
    );
  const systems: System[] = [];
  for (const { name, open } of declarations) {
    const system = await open?.(kernel, below as Below, own);
    if (system === undefined) continue;
    systems.push(system);
    provide(name, system.gives);
  }
  return { systems, below: below as Below };
}
