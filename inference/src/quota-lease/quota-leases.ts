import { type AccountName, parseAccount, rpmWindowMs } from "@holdfast/common/inference/accounts.ts";
import { ignoreLogged } from "../journal/journal.ts";
import type { Amount, Batch, JournalRecord, JournalState } from "../journal/journal-state.ts";

/** Result of `tryLease`. */
export type LeaseResult =
  | { readonly kind: "taken" }
  /** The limit of all processes is exhausted, except for `remaining`. */
  | { readonly kind: "refused"; readonly remaining: number; readonly retryInMs: number }
  /** No controller is connected. */
  | { readonly kind: "unavailable" };

/** A request for more quota of an account. */
export interface QuotaLeaseRequest {
  readonly account: string;
  readonly organizationId: string;
  /** Amount that all waiting calls need in addition. */
  readonly need: number;
  /** Amount of the smallest waiting call. */
  readonly min: number;
  readonly reserved: number;
}

/**
 * Quota leases: the amounts of each account that this process may use. A call is admitted by the local lease; if it
 * does not suffice, more is requested from the controllers, which refuse a call only if no process has unused quota
 * (docs/how-to/inference.md, Limits).
 */
export interface QuotaLeases {
  /**
   * Reserves an amount until `settle`, immediately or once the controllers have granted it. An amount of a rate is used
   * and needs no `settle`.
   */
  tryLease(account: string, organizationId: string, amount: number): Promise<LeaseResult> | LeaseResult;
  /** Ends a reservation and charges `used`, which may exceed it. */
  settle(account: string, reserved: number, used: number): void;
  /** Requests that a rate still admits here, and the time until the next one. */
  rate(account: string): { readonly remaining: number; readonly retryInMs: number };
  /** Called when a controller is connected; its leases replace the local ones. */
  connected(leases: ReadonlyMap<string, number>, send: (request: QuotaLeaseRequest) => void): void;
  granted(account: string, amount: number, remaining: number): void;
  /** Returns unused quota: exactly `need`, or up to half of it if that is more. */
  recalled(account: string, need: number, exactly: boolean): { readonly amount: number; readonly reserved: number };
  /** The charges of a batch are posted to the accounts. */
  posted(charges: readonly Amount[]): void;
  /** Limits may have changed: refused requests are sent again. */
  configurationChanged(): void;
  /** Called when no controller is connected any more. */
  disconnected(): void;
}

interface Account {
  readonly name: AccountName | undefined;
  leased: number;
  /** Usage of ended calls that is not posted to the controllers' account yet. */
  unposted: number;
  reserved: number;
  /** Times of the requests of a rate; undefined for other accounts. */
  readonly times: RequestTimes | undefined;
  readonly waiting: Waiting[];
  /** Number of waiting calls for which quota was requested. */
  requestedCount: number;
  /** Time in milliseconds since 1970 until which a refusal applies. */
  refusedUntil: number;
  remaining: number;
}

interface Waiting {
  readonly amount: number;
  readonly organizationId: string;
  readonly resolve: (taken: LeaseResult) => void;
}

interface Deps {
  readonly append: (record: JournalRecord) => Promise<void>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Requests that a key may send in 60 s; undefined for no limit. */
  readonly rateOf: (keyId: string) => number | undefined;
}

/** Time for which a refusal of the controllers applies to later calls. */
const refusalMs = 100;

/** Starts with the state of the journal. */
export function createQuotaLeases(state: JournalState, { append, now, rateOf }: Deps): QuotaLeases {
  const accounts = new Map<string, Account>();
  let send: ((request: QuotaLeaseRequest) => void) | undefined;

  for (const [id, leased] of state.leases) accountOf(id).leased = leased;
  for (const [id, times] of state.requests) for (const at of times) accountOf(id).times?.add(at);
  for (const { amounts } of [...state.batches.flatMap(({ settlements }) => settlements), ...state.unsent])
    for (const [id, amount] of amounts) accountOf(id).unposted += amount;
  for (const { amounts } of state.open.values()) for (const [id, amount] of amounts) accountOf(id).reserved += amount;

  function accountOf(id: string): Account {
    let account = accounts.get(id);
    if (account === undefined) {
      const name = parseAccount(id);
      const times = name?.kind === "rpm" ? createRequestTimes() : undefined;
      account = {
        name,
        leased: 0,
        unposted: 0,
        reserved: 0,
        times,
        waiting: [],
        requestedCount: 0,
        refusedUntil: 0,
        remaining: 0,
      };
      accounts.set(id, account);
    }
    return account;
  }

  /** Requests of the last 60 s, or the spent and reserved amount. */
  function usedOf({ times, unposted, reserved }: Account): number {
    if (times === undefined) return unposted + reserved;
    times.drop(now() - rpmWindowMs);
    return times.count;
  }

  const unused = (account: Account) => {
    const limit = account.name?.kind === "rpm" ? rateOf(account.name.subject) : undefined;
    return Math.min(account.leased, limit ?? Number.POSITIVE_INFINITY) - usedOf(account);
  };

  function use(id: string, account: Account, amount: number): void {
    if (account.times === undefined) {
      account.reserved += amount;
      return;
    }
    const at = now();
    account.times.add(at);
    append({ t: "request", account: id, at }).catch(ignoreLogged);
  }

  function setLeased(id: string, account: Account, leased: number): Promise<void> {
    account.leased = leased;
    return append({ t: "hold", account: id, amount: leased });
  }

  function requestMore(id: string, account: Account): void {
    const { waiting } = account;
    if (account.requestedCount > 0 || waiting.length === 0 || send === undefined) return;
    account.requestedCount = waiting.length;
    const requested = waiting.reduce((sum, { amount }) => sum + amount, 0);
    send({
      account: id,
      organizationId: waiting[0]?.organizationId ?? "",
      need: Math.max(1, requested - Math.max(0, unused(account))),
      min: Math.min(...waiting.map(({ amount }) => amount)),
      reserved: account.reserved,
    });
  }

  function retryInMs({ times }: Account): number {
    const oldest = times?.oldest;
    return oldest === undefined ? 1_000 : Math.max(1, oldest + rpmWindowMs - now());
  }

  return {
    tryLease(id, organizationId, amount) {
      const account = accountOf(id);
      if (account.waiting.length === 0 && unused(account) >= amount) {
        use(id, account, amount);
        return { kind: "taken" };
      }
      if (send === undefined) return { kind: "unavailable" };
      if (now() < account.refusedUntil)
        return { kind: "refused", remaining: account.remaining, retryInMs: retryInMs(account) };
      return new Promise((resolve) => {
        account.waiting.push({ amount, organizationId, resolve });
        // Calls of one event loop iteration are requested together.
        if (account.waiting.length === 1) setImmediate(() => requestMore(id, account));
      });
    },

    settle(id, reserved, used) {
      const account = accountOf(id);
      account.reserved -= reserved;
      account.unposted += used;
    },

    rate(id) {
      const account = accountOf(id);
      return { remaining: Math.max(0, unused(account)), retryInMs: retryInMs(account) };
    },

    connected(leases, nextSend) {
      for (const id of leases.keys()) accountOf(id);
      for (const [id, account] of accounts) {
        const leased = leases.get(id) ?? 0;
        if (leased !== account.leased) setLeased(id, account, leased).catch(ignoreLogged);
        account.requestedCount = 0;
      }
      send = nextSend;
      for (const [id, account] of accounts) requestMore(id, account);
    },

    granted(id, amount, remaining) {
      const account = accountOf(id);
      if (amount !== 0) setLeased(id, account, account.leased + amount).catch(ignoreLogged);
      const requesters = account.waiting.splice(0, account.requestedCount);
      account.requestedCount = 0;
      let isShort = false;
      for (const { amount: requested, resolve } of requesters) {
        if (unused(account) >= requested) {
          use(id, account, requested);
          resolve({ kind: "taken" });
          continue;
        }
        isShort = true;
        account.remaining = Math.max(0, unused(account)) + remaining;
        resolve({ kind: "refused", remaining: account.remaining, retryInMs: retryInMs(account) });
      }
      if (isShort) account.refusedUntil = now() + refusalMs;
      requestMore(id, account);
    },

    recalled(id, need, exactly) {
      const account = accountOf(id);
      const free = Math.max(0, Math.floor(account.leased - usedOf(account)));
      const amount = Math.min(free, exactly ? need : Math.max(need, Math.floor(free / 2)));
      if (amount > 0) setLeased(id, account, account.leased - amount).catch(ignoreLogged);
      return { amount, reserved: account.times === undefined ? account.reserved : 0 };
    },

    posted(charges) {
      for (const [id, amount] of charges) {
        const account = accountOf(id);
        account.unposted -= amount;
        setLeased(id, account, account.leased - amount).catch(ignoreLogged);
      }
    },

    configurationChanged() {
      for (const account of accounts.values()) account.refusedUntil = 0;
    },

    disconnected() {
      send = undefined;
      for (const account of accounts.values()) {
        account.requestedCount = 0;
        for (const { resolve } of account.waiting.splice(0)) resolve({ kind: "unavailable" });
      }
    },
  };
}

/** Total charge of a batch for each account. */
export function chargesOf({ settlements }: Pick<Batch, "settlements">): Amount[] {
  const sums = new Map<string, number>();
  for (const { amounts } of settlements)
    for (const [account, amount] of amounts) sums.set(account, (sums.get(account) ?? 0) + amount);
  return [...sums];
}

/** Times of requests, the oldest first. */
interface RequestTimes {
  readonly count: number;
  /** Time of the oldest request; undefined if there is none. */
  readonly oldest: number | undefined;
  add(at: number): void;
  /** Drops all requests up to this time. */
  drop(until: number): void;
}

/** Dropped entries are removed from the array once they are at least this many, and half of the array. */
const minDropped = 1_024;

function createRequestTimes(): RequestTimes {
  let times: number[] = [];
  let first = 0;
  return {
    get count() {
      return times.length - first;
    },
    get oldest() {
      return times[first];
    },
    add: (at) => {
      times.push(at);
    },
    drop(until) {
      while (first < times.length && (times[first] ?? 0) <= until) first += 1;
      if (first < minDropped || first < times.length / 2) return;
      times = times.slice(first);
      first = 0;
    },
  };
}
