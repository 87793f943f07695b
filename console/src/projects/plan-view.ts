import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import type { PlanChange, PlanEntry, ProjectPlan } from "@holdfast/sdk/responses.ts";
import { isRecord } from "../generic/generic-view.ts";
import { priceText } from "../format.ts";
import type { Tone } from "../tone.ts";

/** The descriptor of the form's text, or the reason why it is not one. */
export function descriptorOf(text: string): {
  readonly descriptor?: Readonly<Record<string, unknown>>;
  readonly fault?: string;
} {
  try {
    const descriptor = parseExactly(text);
    return isRecord(descriptor) ? { descriptor } : { fault: "Is not a JSON object." };
  } catch (error) {
    return { fault: `Is not JSON: ${error instanceof Error ? error.message : "the reason is unknown"}.` };
  }
}

/** True if a deployment of the plan would change something. */
export function hasChanges({ plan }: Pick<ProjectPlan, "plan">): boolean {
  return plan.some(({ action }) => action === "create" || action === "update");
}

const tones: Readonly<Record<PlanEntry["action"], Tone>> = {
  create: "good",
  update: "busy",
  noop: "none",
  unmanaged: "warn",
};

export function actionTone({ action }: PlanEntry): Tone {
  return tones[action];
}

/** Lines of a change: the previous value, and the new one. */
export function diffLines(
  changes: readonly PlanChange[],
): readonly { readonly sign: "+" | "-"; readonly text: string }[] {
  return changes.flatMap(({ path, before, after }) => [
    ...(before === null || before === undefined
      ? []
      : [{ sign: "-" as const, text: `${path}: ${JSON.stringify(before)}` }]),
    ...(after === null || after === undefined
      ? []
      : [{ sign: "+" as const, text: `${path}: ${JSON.stringify(after)}` }]),
  ]);
}

/** The cost before and after: "$10.00 -> $12.00 a month". */
export function costChangeText({ monthly_cost: after, cost_delta: delta, currency }: ProjectPlan): string {
  return `${priceText(after - delta, currency)} -> ${priceText(after, currency)} a month`;
}

/** A descriptor to start from. */
export const firstDescriptor = JSON.stringify(
  {
    name: "shop",
    resources: [
      { logical_name: "orders", kind: "postgres", spec: { plan: "tier-1", storage_gb: 10 } },
      { logical_name: "cache", kind: "valkey", spec: { plan: "tier-1", storage_gb: 1 } },
    ],
    dependencies: { cache: ["orders"] },
  },
  null,
  2,
);
