import type { EventDefinition } from "#kernel/outbox/event-definition.ts";

const data = {
  period: { type: "string", meaning: "the month in UTC, such as 2026-11" },
  spent_cents: { type: "number", meaning: "what the month has cost so far" },
  monthly_cost_limit_cents: { type: "number", meaning: "the limit of the month" },
} as const;

const example = { period: "2026-11", spent_cents: 4012.5, monthly_cost_limit_cents: 5000 };

/** Events of an organization's inference. */
export const inferenceEventDefinitions = {
  "inference.budget_warning": { when: "the month has cost alert_pct of its limit, once a month", data, example },
  "inference.circuit_opened": {
    when: "the month's limit is used up, and calls are refused from now on",
    data,
    example: { ...example, spent_cents: 5000 },
  },
  "inference.circuit_closed": {
    when: "the circuit was closed by a reset with room below the limit",
    data,
    example: { ...example, spent_cents: 5000, monthly_cost_limit_cents: 8000 },
  },
} as const satisfies Record<string, EventDefinition>;
