import type { Kernel } from "./kernel.ts";
import type { SystemDeclaration } from "./system-declaration.ts";
import type { System } from "./system.ts";

/** Opens systems in the order of the list, each with the parts common to all and those of the systems before it. */
export async function openSystems<Below extends object>(
  kernel: Kernel,
  declarations: readonly SystemDeclaration<Below>[],
  { given, settings }: { readonly given: Partial<Below>; readonly settings: unknown },
): Promise<{ readonly systems: readonly System[]; readonly below: Below }> {
  const below: Record<string, unknown> = { ...given };
  const own = settings as never;
  function give(name: string, parts: unknown): void {
    for (const [part, value] of Object.entries(parts ?? {})) {
      if (Object.hasOwn(below, part)) throw new Error(`${name} gives ${part}, which another system gives`);
      below[part] = value;
    }
  }
  for (const { name, seams } of declarations)
    give(
      name,
      seams?.(kernel, own, () => below as Below),
    );
  const systems: System[] = [];
  for (const { name, open } of declarations) {
    const system = await open?.(kernel, below as Below, own);
    if (system === undefined) continue;
    systems.push(system);
    give(name, system.gives);
  }
  return { systems, below: below as Below };
}
