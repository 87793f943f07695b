import { valkeyParameters } from "@holdfast/common/engine-catalog/valkey-parameters.ts";
import {
  drawSteps,
  name,
  newServiceLife,
  parameterRule,
  type Rule,
  type ServiceLife,
  serviceRules,
  removeRandom,
  type WalkChoice,
} from "./walk-plan.ts";
import type { PlannedStep, ValkeyStep } from "./walk-step.ts";

/**
 * Parameters by which a Valkey acknowledges writes that it may lose, evicts acknowledged ones, or rejects writes
 * without a replica.
 */
const unfit: ReadonlySet<string> = new Set([
  "appendfsync",
  "no-appendfsync-on-rewrite",
  "maxmemory-policy",
  "min-replicas-to-write",
]);

interface Life extends ServiceLife {
  users: string[];
}

const rules: readonly Rule<Life, ValkeyStep>[] = [
  parameterRule(() => valkeyParameters.filter((each) => !unfit.has(each.name))),
  ...Object.values(serviceRules),
  { weight: 5, next: (_life, random) => ({ kind: "script", rows: random.pick([1, 10, 1_000, 20_000]) }) },
  // Keys of a short life are absent in every copy; the others exist.
  { weight: 5, next: (_life, random) => ({ kind: "expire", ms: random.pick([1, 1_000, 5_000, 86_400_000]) }) },
  { weight: 2, next: () => ({ kind: "flush" }) },
  {
    weight: 3,
    next(life) {
      const created = name(life, "user");
      life.users.push(created);
      return { kind: "create-user", name: created };
    },
  },
  {
    weight: 1,
    when: ({ users }) => users.length > 0,
    next: (life, random) => ({ kind: "drop-user", name: removeRandom(life.users, random) }),
  },
];

/** The steps of a Valkey's walk, without an end. */
export function planValkeySteps(choice: WalkChoice): Generator<PlannedStep<ValkeyStep>, never> {
  return drawSteps(rules, { ...newServiceLife(), users: [] }, choice);
}
