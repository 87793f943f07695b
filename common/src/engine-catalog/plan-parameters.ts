import { engineOf } from "./engine-catalog.ts";
import type { PlanSize } from "./engine-row.ts";

/** The parameters that a plan determines, as the engine prints them; none for an unknown engine. */
export function planParameters(engine: string, plan: PlanSize): Readonly<Record<string, string>> {
  return engineOf(engine)?.sizing.parameters(plan) ?? {};
}
