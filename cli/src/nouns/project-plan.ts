import type { PlanChange, PlanEntry, ProjectPlan } from "@holdfast/sdk/responses.ts";

const signs: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ create: "+", update: "~", noop: " ", unmanaged: "?" }),
);

/** True if a deployment of the plan would change something. */
export function hasChanges({ plan }: Pick<ProjectPlan, "plan">): boolean {
  return plan.some(({ action }) => action === "create" || action === "update");
}

/** The text of a plan: one line per resource, its changes below it, and the cost before and after. */
export function planText({ plan, monthly_cost: after, cost_delta: delta, currency, warnings }: ProjectPlan): string {
  const width = Math.max(0, ...plan.map(({ logical_name: name }) => name.length));
  const lines = plan.flatMap((entry) => entryLines(entry, width));
  const before = after - delta;
  const cost = `Cost a month: ${money(before)} -> ${money(after)} ${currency}`;
  return [...lines, "", cost, ...warnings, hasChanges({ plan }) ? "" : "Nothing is changed."]
    .filter((line, index, all) => line !== "" || (index > 0 && index < all.length - 1))
    .join("\n");
}

function entryLines(entry: PlanEntry, width: number): string[] {
  const { logical_name: name, kind, action, reason, changes, pending_changes: pending, drift } = entry;
  const why = reason === null ? "" : `  (${reason})`;
  return [
    `${signs.get(action) ?? " "} ${name.padEnd(width)}  ${kind}  ${action}${why}`,
    ...changes.map((change) => `    ${changeText(change)}`),
    ...pending.map((change) => `    ${changeText(change)}`),
    ...(drift.length > 0 ? [`    drift: ${drift.join(", ")}`] : []),
  ];
}

/** True for a difference whose values are in no response: that of a variable. */
function isHidden({ path }: Pick<PlanChange, "path">): boolean {
  return /^(env|secret_env)\./.test(path);
}

const hiddenText = "differs (values of variables are not shown)";

/** A row of a table of differences, without values for a variable. */
export function driftRow(change: PlanChange): Pick<PlanChange, "path" | "before" | "after"> {
  return isHidden(change) ? { path: change.path, before: "(not shown)", after: "(not shown)" } : change;
}

function changeText({ path, before, after }: PlanChange): string {
  if (isHidden({ path })) return `${path}: ${hiddenText}`;
  return `${path}: ${valueText(before)} -> ${valueText(after)}`;
}

function valueText(value: unknown): string {
  return value === null || value === undefined ? "..." : JSON.stringify(value);
}

function money(amount: number): string {
  return amount.toFixed(2);
}
