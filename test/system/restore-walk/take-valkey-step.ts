import { byApi, serviceExecutors } from "./take-service-step.ts";
import { keyOf, keyPrefix, type ValkeyFixture, valueOf, valuePrefix } from "./valkey-fixture.ts";
import type { Action, LedgerRow } from "./walk-ledger.ts";
import type { ValkeyStep } from "./walk-step.ts";

type StepKind = ValkeyStep["kind"];
type StepOf<K extends StepKind> = Extract<ValkeyStep, { kind: K }>;
type Executor<K extends StepKind> = (fixture: ValkeyFixture, step: StepOf<K>) => Promise<string>;

/** An engine that starts, ends, or has become a replica: the outcome is unknown. */
const isInterrupted = (error: unknown) =>
  error instanceof Error &&
  /^(LOADING|READONLY|MASTERDOWN|NOREPLICAS|UNBLOCKED|BUSY)|closed|ended|timed? ?out|takes no client|ECONN|EPIPE|enableOfflineQueue/.test(
    error.message,
  );

/** Resolves with "done" when it was acknowledged, and with the reason when the outcome is unknown. */
async function attempt(action: Action, act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
    action.acknowledgedAt = Date.now();
    return "done";
  } catch (error) {
    if (isInterrupted(error)) return `interrupted: ${(error as Error).message}`;
    throw error;
  }
}

/** New rows of the ledger that are one write. */
function rowsOf({ ledger, nextRow }: ValkeyFixture, count: number): { created: Action; rows: LedgerRow[] } {
  const created: Action = { startedAt: Date.now() };
  const rows = Array.from({ length: count }, (): LedgerRow => ({ id: nextRow(), created }));
  ledger.rows.push(...rows);
  return { created, rows };
}

const many = `for number = ARGV[1], ARGV[2] do
  local row = string.format("%d", number)
  redis.call("SET", "${keyPrefix}" .. row, "${valuePrefix}" .. row)
end`;

const executors: { readonly [K in StepKind]: Executor<K> } = {
  ...serviceExecutors,
  script: (fixture, { rows: count }) => {
    const { created, rows } = rowsOf(fixture, count);
    const [first = 0, last = 0] = [rows[0]?.id, rows.at(-1)?.id];
    return attempt(created, () => fixture.within((client) => client.eval(many, 0, first, last)));
  },
  expire: (fixture, { ms }) => {
    const { created, rows } = rowsOf(fixture, 1);
    const [{ id } = { id: 0 }] = rows;
    const at = Date.now() + ms;
    fixture.expiries.set(id, at);
    return attempt(created, () => fixture.within((client) => client.set(keyOf(id), valueOf(id), "PXAT", at)));
  },
  flush: async (fixture) => {
    await fixture.pause();
    const dropped: Action = { startedAt: Date.now() };
    for (const row of fixture.ledger.rows) row.dropped ??= dropped;
    try {
      return await attempt(dropped, () => fixture.within((client) => client.flushall()));
    } finally {
      fixture.resume();
    }
  },
  "create-user": (fixture, { name }) =>
    byApi(fixture, "POST", "/database-users", { username: name, role: "readwrite" }).then(() => "done"),
  "drop-user": (fixture, { name }) => byApi(fixture, "DELETE", `/database-users/${name}`).then(() => "done"),
};

/** Executes one step; resolves with its outcome. Throws for a forbidden result. */
export function takeValkeyStep<K extends StepKind>(fixture: ValkeyFixture, step: StepOf<K>): Promise<string> {
  const take: Executor<K> = executors[step.kind as K];
  return take(fixture, step);
}
