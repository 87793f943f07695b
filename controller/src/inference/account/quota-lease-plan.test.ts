import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AccountStatus, emptyAccount, inferenceAccountKind } from "./inference-account.ts";
import {
  freeOf,
  granted,
  leasedOf,
  opensCircuit,
  planLease,
  released,
  settledBy,
  withoutLost,
} from "./quota-lease-plan.ts";

const holders = (...connected: string[]) => ({ connected, now: 1_000 });
const demand = (processId: string, need: number) => ({ id: `r-${processId}`, processId, need });

describe("a quota lease", () => {
  test("of a single process is everything that is available", () => {
    expect(planLease(emptyAccount, 100, demand("a", 7), holders("a"))).toEqual({ kind: "grant", amount: 100 });
  });

  test("leaves a share for each of several processes", () => {
    expect(planLease(emptyAccount, 100, demand("a", 10), holders("a", "b", "c"))).toEqual({
      kind: "grant",
      amount: 40,
    });
  });

  test("of other processes is recalled before a call is refused", () => {
    const account = { ...emptyAccount, leases: { a: 100 } };
    const step = planLease(account, 100, demand("b", 30), holders("a", "b"));
    expect(step).toMatchObject({ kind: "recall", recall: { by: "b", need: 30, from: ["a"] } });
    if (step.kind !== "recall") return;
    const waiting = { ...account, recall: step.recall };
    expect(planLease(waiting, 100, demand("b", 30), holders("a", "b")).kind).toBe("wait");
    const answered = released(waiting, "a", { amount: 20, reserved: 5, recallId: "r-b" });
    expect(planLease(answered, 100, demand("b", 30), holders("a", "b"))).toEqual({ kind: "grant", amount: 20 });
  });

  test("of a disconnected process is not waited for, and stays counted", () => {
    const account = { ...emptyAccount, leases: { lost: 80 } };
    expect(planLease(account, 100, demand("b", 30), holders("b"))).toEqual({ kind: "grant", amount: 20 });
  });

  test("of a lost process becomes available, and is recorded as unaccounted", () => {
    const account = withoutLost({ ...emptyAccount, settled: 10, leases: { lost: 80, b: 5 } }, "lost");
    expect(account).toMatchObject({ settled: 10, leases: { b: 5 }, unaccounted: { lost: 80 } });
    expect(planLease(account, 100, demand("b", 85), holders("b"))).toEqual({ kind: "grant", amount: 85 });
    // A repeat, or a negative lease, changes nothing.
    expect(withoutLost(account, "lost")).toEqual(account);
    expect(withoutLost({ ...emptyAccount, leases: { lost: -3 } }, "lost").unaccounted).toEqual({});
  });

  test("is waited for at most a second", () => {
    const recall = { id: "r-b", by: "b", need: 30, from: ["a"], answered: {}, until: 900 };
    const account = { ...emptyAccount, leases: { a: 100 }, recall };
    expect(planLease(account, 100, demand("b", 30), holders("a", "b"))).toEqual({ kind: "grant", amount: 0 });
  });
});

describe("the circuit", () => {
  const account = { ...emptyAccount, settled: 95 };
  test.each([
    ["opens when the month has cost the limit", { ...account, settled: 100 }, undefined, true],
    ["opens when a small call does not fit and nothing can be released", account, { least: 10, reserved: 0 }, true],
    ["stays closed while something can be released", account, { least: 10, reserved: 1 }, false],
    ["stays closed when a large call does not fit", account, { least: 11, reserved: 0 }, false],
    ["opens once", { ...account, settled: 100, circuitOpenedAt: 1 }, undefined, false],
  ])("%s", (_, status, refused, opens) => {
    expect(opensCircuit(status, 100, refused)).toBe(opens);
  });
});

/**
 * Processes lease, use, settle, crash and return, while messages between them and the account are late, lost or
 * answered twice. Together they never exceed the limit, and at rest a request gets everything that is available.
 */
interface Process {
  leased: number;
  reserved: number;
  unlanded: number;
  alive: boolean;
}

type Step =
  | { readonly do: "request"; readonly who: number; readonly need: number }
  | { readonly do: "use"; readonly who: number; readonly amount: number }
  | { readonly do: "settle"; readonly who: number; readonly part: number }
  | { readonly do: "land"; readonly who: number }
  | { readonly do: "kill"; readonly who: number }
  | { readonly do: "return"; readonly who: number }
  | { readonly do: "tick" };

const who = fc.integer({ min: 0, max: 2 });
const amount = fc.integer({ min: 1, max: 60 });
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("request" as const), who, need: amount }),
    fc.record({ do: fc.constant("use" as const), who, amount }),
    fc.record({ do: fc.constant("settle" as const), who, part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ do: fc.constant("land" as const), who }),
    fc.record({ do: fc.constant("kill" as const), who }),
    fc.record({ do: fc.constant("return" as const), who }),
    fc.record({ do: fc.constant("tick" as const) }),
  ),
  { maxLength: 60, size: "max" },
);

function explore(
  all: readonly Step[],
  limit: number,
  plan = planLease,
): { readonly most: number; readonly remaining: number } {
  let account: AccountStatus = emptyAccount;
  let now = 0;
  let demands = 0;
  const processes = new Map(
    ["a", "b", "c"].map((id): [string, Process] => [id, { leased: 0, reserved: 0, unlanded: 0, alive: true }]),
  );
  const names = [...processes.keys()];
  const of = (at: number): [string, Process] => {
    const id = names[at] ?? "a";
    return [id, processes.get(id) as Process];
  };
  const connected = () => names.filter((id) => processes.get(id)?.alive);
  const free = ({ leased, reserved, unlanded }: Process) => leased - reserved - unlanded;
  let most = 0;
  const note = () => {
    let used = account.settled;
    for (const each of processes.values()) used += each.reserved + each.unlanded;
    most = Math.max(most, used);
  };

  function requestLease(id: string, need: number): number {
    demands += 1;
    const asking = { id: `r${demands}`, processId: id, need };
    for (;;) {
      const step = plan(account, limit, asking, { connected: connected(), now });
      if (step.kind === "grant") {
        account = granted(account, asking, step.amount);
        const holder = processes.get(id) as Process;
        holder.leased += step.amount;
        return step.amount;
      }
      if (step.kind === "recall") account = { ...account, recall: step.recall };
      const { recall } = account;
      for (const other of recall?.from ?? []) {
        const holder = processes.get(other) as Process;
        if (!holder.alive || recall?.answered[other] !== undefined) continue;
        const given = Math.min(Math.max(0, free(holder)), Math.max(recall?.need ?? 0, Math.floor(free(holder) / 2)));
        holder.leased -= given;
        account = released(account, other, { amount: given, reserved: holder.reserved, recallId: recall?.id ?? "" });
      }
      now += 300;
    }
  }

  for (const step of all) {
    if (step.do === "tick") {
      now += 500;
      continue;
    }
    const [id, holder] = of(step.who);
    if (step.do === "kill") holder.alive = false;
    else if (step.do === "return" && !holder.alive) {
      holder.alive = true;
      // Calls in flight cost what they had reserved; the lease is what the account has.
      holder.unlanded += holder.reserved;
      holder.reserved = 0;
      holder.leased = account.leases[id] ?? 0;
    } else if (!holder.alive) continue;
    else if (step.do === "request") requestLease(id, step.need);
    else if (step.do === "use" && free(holder) >= step.amount) holder.reserved += step.amount;
    else if (step.do === "settle") {
      holder.unlanded += Math.floor(holder.reserved * step.part);
      holder.reserved = 0;
    } else if (step.do === "land") {
      account = settledBy(account, id, holder.unlanded);
      holder.leased -= holder.unlanded;
      holder.unlanded = 0;
    }
    note();
  }
  // At rest all processes are back, and a request for everything that is available gets it.
  for (const [id, holder] of processes) {
    if (!holder.alive) holder.leased = account.leases[id] ?? 0;
    holder.alive = true;
    account = settledBy(account, id, holder.unlanded + holder.reserved);
    holder.leased -= holder.unlanded + holder.reserved;
    holder.unlanded = 0;
    holder.reserved = 0;
  }
  now += 2_000;
  const remaining = limit - account.settled;
  if (remaining > 0) {
    const mine = processes.get("a") as Process;
    requestLease("a", remaining - Math.max(0, mine.leased));
    return { most, remaining: remaining - mine.leased };
  }
  return { most, remaining: 0 };
}

describe("any number of processes", () => {
  test("never exceed a limit together, and strand no quota", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 300 }), (all, limit) => {
        const { most, remaining } = explore(all, limit);
        expect(most).toBeLessThanOrEqual(limit);
        expect(remaining).toBeLessThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });

  test("are detected when a planted fault exceeds the limit", () => {
    // A faulty plan that ignores the leases of disconnected processes.
    const forgetful: typeof planLease = (account, limit, holder, all) => {
      const leases = Object.fromEntries(Object.entries(account.leases).filter(([id]) => all.connected.includes(id)));
      return planLease({ ...account, leases }, limit, holder, all);
    };
    expect(() =>
      fc.assert(
        fc.property(steps, (all) => explore(all, 100, forgetful).most <= 100),
        { numRuns: 2_000 },
      ),
    ).toThrow();
  });

  test("lease the limit minus what is settled", () => {
    const account = { ...emptyAccount, settled: 30, leases: { a: 20, b: -5 } };
    expect([leasedOf(account.leases), freeOf(account, 100)]).toEqual([20, 50]);
  });
});

test("stored accounts keep their keys", () => {
  const text = '{"spec":{},"status":{"settled":1,"holds":{"a":2}}}';
  const account = inferenceAccountKind.parse(text);
  expect(account.status.leases).toEqual({ a: 2 });
  expect(inferenceAccountKind.format(account)).toBe(text);
});
