/** Organization, key, provider and model of a call. */
export interface CallNames {
  readonly organizationId: string;
  readonly keyId: string;
  readonly provider: string;
  /** Model without the prefix. */
  readonly model: string;
}

/** An amount of an account. */
export type Amount = readonly [account: string, amount: number];

export interface Tokens {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** Upper bound of a call's usage, recorded before the request is sent. */
export interface Reservation extends CallNames, Tokens {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly costMicrocents: number;
  readonly amounts: readonly Amount[];
}

/** Usage of a call. */
export interface Used extends Tokens {
  readonly costMicrocents: number;
  /** True if the proxy counted a part of the tokens, because the provider did not report it. */
  readonly estimated: boolean;
  /** The provider reported more tokens than the reservation. */
  readonly aboveReservation?: true;
}

/** Usage of a call with its reservation. */
export interface Settlement extends Reservation, Used {
  /** 0 for a call that was not sent or costs nothing. */
  readonly requests: 0 | 1;
}

/**
 * A line of the journal, such as `{"t":"hold","account":"cost.<organization>.2026-11","amount":500}`. Names are short,
 * since each call writes several lines.
 */
export type JournalRecord =
  | { readonly t: "reserve"; readonly call: Reservation }
  /** The end of a reservation in the journal. */
  | { readonly t: "used"; readonly id: string; readonly used: Used; readonly requests: 0 | 1 }
  | { readonly t: "settle"; readonly call: Settlement }
  /** The next `count` settlements without a batch form batch `n`. */
  | { readonly t: "batch"; readonly n: number; readonly count: number }
  /** The controllers have confirmed all batches up to `n`. */
  | { readonly t: "landed"; readonly n: number }
  /** The leased amount of an account from here on. */
  | { readonly t: "hold"; readonly account: string; readonly amount: number }
  /** A request that counts toward the rate of a key. */
  | { readonly t: "request"; readonly account: string; readonly at: number }
  /** Several requests: the time of the first, and the milliseconds between each one and its predecessor. */
  | { readonly t: "requests"; readonly account: string; readonly at: number; readonly after: readonly number[] };

export interface Batch {
  readonly n: number;
  readonly settlements: readonly Settlement[];
}

/** State of a journal. */
export interface JournalState {
  /** Calls in flight, by id. */
  readonly open: Map<string, Reservation>;
  /** Settlements without a batch, in order. */
  readonly unsent: Settlement[];
  /** Batches that the controllers have not confirmed. */
  readonly batches: Batch[];
  /** Number of the newest batch. */
  newest: number;
  /** Leased amount of each account. */
  readonly leases: Map<string, number>;
  /** Times of the requests of the last 60 s, by account. */
  readonly requests: Map<string, number[]>;
}

export function emptyState(): JournalState {
  return { open: new Map(), unsent: [], batches: [], newest: 0, leases: new Map(), requests: new Map() };
}

/** Applies a line to the state. */
export function applyRecord(state: JournalState, record: JournalRecord): void {
  switch (record.t) {
    case "reserve":
      state.open.set(record.call.id, record.call);
      break;
    case "used": {
      const reservation = state.open.get(record.id);
      state.open.delete(record.id);
      if (reservation !== undefined) state.unsent.push(settlementOf(reservation, record.used, record.requests));
      break;
    }
    case "settle":
      state.open.delete(record.call.id);
      state.unsent.push(record.call);
      break;
    case "batch":
      state.batches.push({ n: record.n, settlements: state.unsent.splice(0, record.count) });
      state.newest = record.n;
      break;
    case "landed":
      while (state.batches[0] !== undefined && state.batches[0].n <= record.n) state.batches.shift();
      state.newest = Math.max(state.newest, record.n);
      break;
    case "hold":
      if (record.amount === 0) state.leases.delete(record.account);
      else state.leases.set(record.account, record.amount);
      break;
    case "request":
      requestsOf(state, record.account).push(record.at);
      break;
    case "requests": {
      const times = requestsOf(state, record.account);
      let { at } = record;
      times.push(at);
      for (const ms of record.after) times.push((at += ms));
      break;
    }
  }
}

function requestsOf({ requests }: JournalState, account: string): number[] {
  let times = requests.get(account);
  if (times === undefined) requests.set(account, (times = []));
  return times;
}

function settlementOf(reservation: Reservation, used: Used, requests: 0 | 1): Settlement {
  const { id, at, organizationId, keyId, provider, model } = reservation;
  const { promptTokens, completionTokens, costMicrocents, estimated, aboveReservation } = used;
  const amounts = amountsUsed(reservation, used);
  // biome-ignore format: in the order of a line of the journal
  return {
    id, at, organizationId, keyId, provider, model, promptTokens, completionTokens, costMicrocents, estimated, requests, amounts,
    ...(aboveReservation && { aboveReservation }),
  };
}

/** Usage of a call for each account of its reservation. */
export function amountsUsed(
  { amounts }: Reservation,
  { promptTokens, completionTokens, costMicrocents }: Used,
): Amount[] {
  return amounts.map(([account]) => [
    account,
    account.startsWith("cost.") ? costMicrocents : promptTokens + completionTokens,
  ]);
}

/** The lines that reproduce a state. */
export function* recordsOf(state: JournalState): Generator<JournalRecord> {
  for (const [account, amount] of state.leases) yield { t: "hold", account, amount };
  for (const [account, [at, ...others]] of state.requests) {
    if (at === undefined) continue;
    let before = at;
    const after = others.map((each) => {
      const ms = each - before;
      before = each;
      return ms;
    });
    yield { t: "requests", account, at, after };
  }
  for (const { n, settlements } of state.batches) {
    for (const call of settlements) yield { t: "settle", call };
    yield { t: "batch", n, count: settlements.length };
  }
  yield { t: "landed", n: (state.batches[0]?.n ?? state.newest + 1) - 1 };
  for (const call of state.unsent) yield { t: "settle", call };
  for (const call of state.open.values()) yield { t: "reserve", call };
}
