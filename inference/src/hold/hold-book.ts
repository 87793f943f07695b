import { type AccountName, parseAccount, rpmWindowMs } from "@holdfast/common/inference/accounts.ts";
import { logged } from "../journal/journal.ts";
import type { Amount, Batch, JournalRecord, JournalState } from "../journal/journal-state.ts";
import { createRequestTimes, type RequestTimes } from "./request-times.ts";

/** What came of the wish to use some of an account. */
export type Taken =
  | { readonly kind: "taken" }
  /** All processes together have only so much left. */
  | { readonly kind: "refused"; readonly left: number; readonly retryInMs: number }
  /** No controller can be asked. */
  | { readonly kind: "unavailable" };

/** Asks the controllers for more of an account. */
export interface HoldRequest {
  readonly account: string;
  readonly organizationId: string;
  readonly need: number;
  readonly least: number;
  readonly reserved: number;
}

/** What this process may use of each account. It admits by that alone, and asks for more when it is used up. */
export interface HoldBook {
  /** Takes this much, now or when controllers have answered. What is taken is reserved until `settle`; of a rate it is used. */
  take(account: string, organizationId: string, amount: number): Promise<Taken> | Taken;
  /** The reservation ends: `used` of it, or more, was used. */
  settle(account: string, reserved: number, used: number): void;
  /** Requests that a rate still lets pass here, and when the next place is free. */
  rate(account: string): { readonly left: number; readonly retryInMs: number };
  /** From now on controllers can be asked; what they know of holds is what counts. */
  welcome(holds: ReadonlyMap<string, number>, send: (request: HoldRequest) => void): void;
  granted(account: string, amount: number, left: number): void;
  /** Gives back what is not used: so much exactly, else up to half of it. */
  recalled(account: string, need: number, exactly: boolean): { readonly amount: number; readonly reserved: number };
  /** Charges of a batch are in the accounts. */
  landed(charges: readonly Amount[]): void;
  /** Limits may have changed: what controllers refused a moment ago is asked again. */
  configured(): void;
  /** Nobody can be asked any more. */
  alone(): void;
}

interface Account {
  readonly name: AccountName | undefined;
  held: number;
  /** By calls that ended, and is not in the controllers' account yet. */
  unlanded: number;
  reserved: number;
  /** When requests came, of a rate; undefined for what is no rate. */
  readonly times: RequestTimes | undefined;
  readonly waiting: Waiting[];
  /** So many of those who wait are asked for. */
  asked: number;
  /** Until then the answer of the controllers stands. */
  deniedUntil: number;
  left: number;
}

interface Waiting {
  readonly amount: number;
  readonly organizationId: string;
  readonly answer: (taken: Taken) => void;
}

interface Deps {
  readonly append: (record: JournalRecord) => Promise<void>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Requests that a key may send in 60 s, as it is configured; undefined for any number. */
  readonly rateOf: (keyId: string) => number | undefined;
}

const deniedMs = 100;

/** Begins with what the journal says. */
export function createHoldBook(state: JournalState, { append, now, rateOf }: Deps): HoldBook {
  const accounts = new Map<string, Account>();
  let send: ((request: HoldRequest) => void) | undefined;

  for (const [id, held] of state.holds) accountOf(id).held = held;
  for (const [id, times] of state.requests) for (const at of times) accountOf(id).times?.add(at);
  for (const { amounts } of [...state.batches.flatMap(({ settlements }) => settlements), ...state.unsent])
    for (const [id, amount] of amounts) accountOf(id).unlanded += amount;
  for (const { amounts } of state.open.values()) for (const [id, amount] of amounts) accountOf(id).reserved += amount;

  function accountOf(id: string): Account {
    let account = accounts.get(id);
    if (account === undefined) {
      const name = parseAccount(id);
      const times = name?.kind === "rpm" ? createRequestTimes() : undefined;
      account = { name, held: 0, unlanded: 0, reserved: 0, times, waiting: [], asked: 0, deniedUntil: 0, left: 0 };
      accounts.set(id, account);
    }
    return account;
  }

  /** Requests of the last 60 s, or what is spent and reserved. */
  function usedOf({ times, unlanded, reserved }: Account): number {
    if (times === undefined) return unlanded + reserved;
    times.forget(now() - rpmWindowMs);
    return times.count;
  }

  const unused = (account: Account) => {
    const limit = account.name?.kind === "rpm" ? rateOf(account.name.subject) : undefined;
    return Math.min(account.held, limit ?? Number.POSITIVE_INFINITY) - usedOf(account);
  };

  function use(id: string, account: Account, amount: number): void {
    if (account.times === undefined) {
      account.reserved += amount;
      return;
    }
    const at = now();
    account.times.add(at);
    append({ t: "request", account: id, at }).catch(logged);
  }

  function setHeld(id: string, account: Account, held: number): Promise<void> {
    account.held = held;
    return append({ t: "hold", account: id, amount: held });
  }

  function ask(id: string, account: Account): void {
    const { waiting } = account;
    if (account.asked > 0 || waiting.length === 0 || send === undefined) return;
    account.asked = waiting.length;
    const wanted = waiting.reduce((sum, { amount }) => sum + amount, 0);
    send({
      account: id,
      organizationId: waiting[0]?.organizationId ?? "",
      need: Math.max(1, wanted - Math.max(0, unused(account))),
      least: Math.min(...waiting.map(({ amount }) => amount)),
      reserved: account.reserved,
    });
  }

  function retryInMs({ times }: Account): number {
    const oldest = times?.oldest;
    return oldest === undefined ? 1_000 : Math.max(1, oldest + rpmWindowMs - now());
  }

  return {
    take(id, organizationId, amount) {
      const account = accountOf(id);
      if (account.waiting.length === 0 && unused(account) >= amount) {
        use(id, account, amount);
        return { kind: "taken" };
      }
      if (send === undefined) return { kind: "unavailable" };
      if (now() < account.deniedUntil) return { kind: "refused", left: account.left, retryInMs: retryInMs(account) };
      return new Promise((answer) => {
        account.waiting.push({ amount, organizationId, answer });
        // Calls of one turn are asked for together.
        if (account.waiting.length === 1) setImmediate(() => ask(id, account));
      });
    },

    settle(id, reserved, used) {
      const account = accountOf(id);
      account.reserved -= reserved;
      account.unlanded += used;
    },

    rate(id) {
      const account = accountOf(id);
      return { left: Math.max(0, unused(account)), retryInMs: retryInMs(account) };
    },

    welcome(holds, nextSend) {
      for (const id of holds.keys()) accountOf(id);
      for (const [id, account] of accounts) {
        const held = holds.get(id) ?? 0;
        if (held !== account.held) setHeld(id, account, held).catch(logged);
        account.asked = 0;
      }
      send = nextSend;
      for (const [id, account] of accounts) ask(id, account);
    },

    granted(id, amount, left) {
      const account = accountOf(id);
      if (amount !== 0) setHeld(id, account, account.held + amount).catch(logged);
      const judged = account.waiting.splice(0, account.asked);
      account.asked = 0;
      let isShort = false;
      for (const { amount: wanted, answer } of judged) {
        if (unused(account) >= wanted) {
          use(id, account, wanted);
          answer({ kind: "taken" });
          continue;
        }
        isShort = true;
        account.left = Math.max(0, unused(account)) + left;
        answer({ kind: "refused", left: account.left, retryInMs: retryInMs(account) });
      }
      if (isShort) account.deniedUntil = now() + deniedMs;
      ask(id, account);
    },

    recalled(id, need, exactly) {
      const account = accountOf(id);
      const free = Math.max(0, Math.floor(account.held - usedOf(account)));
      const amount = Math.min(free, exactly ? need : Math.max(need, Math.floor(free / 2)));
      if (amount > 0) setHeld(id, account, account.held - amount).catch(logged);
      return { amount, reserved: account.times === undefined ? account.reserved : 0 };
    },

    landed(charges) {
      for (const [id, amount] of charges) {
        const account = accountOf(id);
        account.unlanded -= amount;
        setHeld(id, account, account.held - amount).catch(logged);
      }
    },

    configured() {
      for (const account of accounts.values()) account.deniedUntil = 0;
    },

    alone() {
      send = undefined;
      for (const account of accounts.values()) {
        account.asked = 0;
        for (const { answer } of account.waiting.splice(0)) answer({ kind: "unavailable" });
      }
    },
  };
}

/** What a batch takes of each account. */
export function chargesOf({ settlements }: Pick<Batch, "settlements">): Amount[] {
  const sums = new Map<string, number>();
  for (const { amounts } of settlements)
    for (const [account, amount] of amounts) sums.set(account, (sums.get(account) ?? 0) + amount);
  return [...sums];
}
