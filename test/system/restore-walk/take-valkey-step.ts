import { byApi, serviceTakes } from "./take-service-step.ts";
import { keyOf, keyPrefix, type ValkeyGround, valueOf, valuePrefix } from "./valkey-ground.ts";
import type { Deed, LedgerRow } from "./walk-ledger.ts";
import type { ValkeyStep } from "./walk-step.ts";

type StepKind = ValkeyStep["kind"];
type StepOf<K extends StepKind> = Extract<ValkeyStep, { kind: K }>;
type Take<K extends StepKind> = (ground: ValkeyGround, step: StepOf<K>) => Promise<string>;

/** An engine that starts, ends, or is another one's replica by now: the outcome is unknown. */
const isInterrupted = (error: unknown) =>
  error instanceof Error &&
  /^(LOADING|READONLY|MASTERDOWN|NOREPLICAS|UNBLOCKED|BUSY)|closed|ended|timed? ?out|takes no client|ECONN|EPIPE|enableOfflineQueue/.test(
    error.message,
  );

/** Resolves with "done" when it was acknowledged, and with the reason when nobody knows. */
async function attempt(deed: Deed, act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
    deed.acknowledgedAt = Date.now();
    return "done";
  } catch (error) {
    if (isInterrupted(error)) return `interrupted: ${(error as Error).message}`;
    throw error;
  }
}

/** New rows of the ledger that are one write. */
function rowsOf({ ledger, nextRow }: ValkeyGround, count: number): { made: Deed; rows: LedgerRow[] } {
  const made: Deed = { begunAt: Date.now() };
  const rows = Array.from({ length: count }, (): LedgerRow => ({ id: nextRow(), made }));
  ledger.rows.push(...rows);
  return { made, rows };
}

const many = `for number = ARGV[1], ARGV[2] do
  local row = string.format("%d", number)
  redis.call("SET", "${keyPrefix}" .. row, "${valuePrefix}" .. row)
end`;

const takes: { readonly [K in StepKind]: Take<K> } = {
  ...serviceTakes,
  script: (ground, { rows: count }) => {
    const { made, rows } = rowsOf(ground, count);
    const [first = 0, last = 0] = [rows[0]?.id, rows.at(-1)?.id];
    return attempt(made, () => ground.within((client) => client.eval(many, 0, first, last)));
  },
  expire: (ground, { ms }) => {
    const { made, rows } = rowsOf(ground, 1);
    const [{ id } = { id: 0 }] = rows;
    const at = Date.now() + ms;
    ground.expiries.set(id, at);
    return attempt(made, () => ground.within((client) => client.set(keyOf(id), valueOf(id), "PXAT", at)));
  },
  flush: async (ground) => {
    await ground.pause();
    const dropped: Deed = { begunAt: Date.now() };
    for (const row of ground.ledger.rows) row.dropped ??= dropped;
    try {
      return await attempt(dropped, () => ground.within((client) => client.flushall()));
    } finally {
      ground.resume();
    }
  },
  "create-user": (ground, { name }) =>
    byApi(ground, "POST", "/database-users", { username: name, role: "readwrite" }).then(() => "done"),
  "drop-user": (ground, { name }) => byApi(ground, "DELETE", `/database-users/${name}`).then(() => "done"),
};

/** Does one step; resolves with what came of it. Throws for what must not be. */
export function takeValkeyStep<K extends StepKind>(ground: ValkeyGround, step: StepOf<K>): Promise<string> {
  const take: Take<K> = takes[step.kind as K];
  return take(ground, step);
}
