import { readConfig, type Setting, type ValuesOf } from "@holdfast/common/config.ts";
import { type Assembly, type Use, type UseLater } from "./assembly.ts";
import type { Kernel, KernelDeps } from "./kernel.ts";
import type { EventDefinition } from "./outbox/event-definition.ts";
import type { Contribution, Usable } from "./part.ts";
import type { System } from "./system.ts";

type Settings = Readonly<Record<string, Setting<unknown>>>;
type SharedParts = Parameters<KernelDeps["prepare"]>[0];
type Environment = Readonly<Record<string, string | undefined>>;

/** An area of scopes, such as `services` in `services:read`. */
export interface ScopeArea {
  readonly verbs: readonly string[];
  /** The lowest role with all verbs of the area; lower roles have `read` only. */
  readonly completeFrom?: "developer" | "admin" | "owner";
}

/**
 * The part of a declaration that needs no kernel. The pages of settings and events, and the SDK's types of events, are
 * printed from it.
 */
interface Declared {
  readonly name: string;
  /** Types of events that the system emits, by name. */
  readonly events?: Readonly<Record<string, EventDefinition>>;
  /** Areas of the scopes that the RPCs of the system need, by name. */
  readonly scopes?: Readonly<Record<string, ScopeArea>>;
  /** Object kind in the audit entry of a refused change, by the full name of the RPC service. */
  readonly audited?: Readonly<Record<string, string>>;
  /** Values for contribution points that need no kernel, such as types of operations. */
  readonly declares?: readonly Contribution[];
  /** Parts that the system provides when it opens, for later systems in the list. */
  readonly provides?: readonly Usable<unknown>[];
}

/** A declared system, whose functions read its settings from the environment. */
export interface SystemDeclaration extends Declared {
  readonly settings?: Settings;
  readonly prepare: (parts: SharedParts, use: Use, environment: Environment, signal: AbortSignal) => Promise<void>;
  readonly contribute: (kernel: Kernel, useLater: UseLater, environment: Environment) => readonly Contribution[];
  /** Resolves to undefined for a planned system. */
  readonly open: (kernel: Kernel, use: Use, environment: Environment) => Promise<System | undefined>;
}

/** Declares a system, whose functions get its settings as parsed values. */
export function declareSystem<S extends Settings = Record<never, never>>(
  declaration: Declared & {
    readonly settings?: S;
    /** Runs before any object is read, with the parts that the controller itself provides. */
    readonly prepare?: (parts: SharedParts, use: Use, settings: ValuesOf<S>, signal: AbortSignal) => Promise<void>;
    /**
     * Returns values for the contribution points and early parts of other systems, before any system opens. It only
     * creates values: it does no input or output, and uses parts later.
     */
    readonly contribute?: (kernel: Kernel, useLater: UseLater, settings: ValuesOf<S>) => readonly Contribution[];
    /** Opens the system with the kernel, the parts that it uses and its settings. Absent: the system is planned. */
    readonly open?: (kernel: Kernel, use: Use, settings: ValuesOf<S>) => System | Promise<System>;
  },
): SystemDeclaration {
  const { settings, prepare, contribute, open } = declaration;
  const settingsIn = (environment: Environment) => readConfig<S>(settings, environment);
  return {
    ...declaration,
    prepare: async (parts, use, environment, signal) => prepare?.(parts, use, settingsIn(environment), signal),
    contribute: (kernel, useLater, environment) => contribute?.(kernel, useLater, settingsIn(environment)) ?? [],
    open: async (kernel, use, environment) => open?.(kernel, use, settingsIn(environment)),
  };
}

/** Merges members that systems declare by name. Throws an error with both systems if two declare the same name. */
export function mergeDeclared<D extends { readonly name: string }, T>(
  declarations: readonly D[],
  membersOf: (declaration: D) => Readonly<Record<string, T>> | undefined,
): Record<string, T> {
  const all: Record<string, T> = {};
  const owners = new Map<string, string>();
  for (const declaration of declarations) {
    for (const [member, value] of Object.entries(membersOf(declaration) ?? {})) {
      const other = owners.get(member);
      if (other !== undefined) throw new Error(`systems "${other}" and "${declaration.name}" both declare "${member}"`);
      owners.set(member, declaration.name);
      all[member] = value;
    }
  }
  return all;
}

/** Opens systems in two phases: all of them contribute, then each opens with the parts of the systems before it. */
export async function openSystems(
  kernel: Kernel,
  declarations: readonly SystemDeclaration[],
  { assembly, environment }: { readonly assembly: Assembly; readonly environment: Environment },
): Promise<readonly System[]> {
  for (const { name, contribute } of declarations)
    assembly.add(name, contribute(kernel, assembly.useLaterFor(name), environment));
  const systems: System[] = [];
  for (const { name, open } of declarations) {
    const system = await open(kernel, assembly.useFor(name), environment);
    if (system === undefined) continue;
    systems.push(system);
    assembly.provide(name, system.provides ?? []);
  }
  assembly.complete();
  return systems;
}
