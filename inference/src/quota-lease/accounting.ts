import { costAccount, periodOf, rpmAccount, tokensAccount } from "@holdfast/common/inference/accounts.ts";
import type { KeySettings, Organization } from "../configuration/configuration.ts";
import { type UsageJournal, ignoreLogged } from "../journal/journal.ts";
import {
  type Amount,
  amountsUsed,
  type CallNames,
  type Reservation,
  type Tokens,
  type Used,
} from "../journal/journal-state.ts";
import type { QuotaLeases, LeaseResult } from "./quota-leases.ts";

/** Estimated usage of a call. */
export interface CallEstimate extends CallNames, Tokens {
  readonly costMicrocents: number;
}

export type Admission =
  | { readonly kind: "admitted"; readonly call: AdmittedCall }
  | {
      readonly kind: "refused";
      readonly limit: "tokens" | "cost";
      readonly remaining: number;
      readonly requested: number;
    }
  | { readonly kind: "unavailable" };

const nothing: Used = { promptTokens: 0, completionTokens: 0, costMicrocents: 0, estimated: false };

/** A call whose reservation is in the journal. It is settled once. */
export interface AdmittedCall {
  readonly reservation: Reservation;
  settle(used: Used): void;
  /** Ends the call without usage: it was not sent, or the provider charges nothing for it. */
  cancel(): void;
}

/**
 * Counts requests and admits calls against quota leases. Each admitted call has a reservation in the journal before it
 * is sent, and a settlement afterwards.
 */
export interface Accounting {
  /** Counts a request of a key against its rate. The count is not reversed if the call fails. */
  countRequest(key: KeySettings): Promise<LeaseResult> | LeaseResult;
  admit(key: KeySettings, organization: Organization, estimate: CallEstimate): Promise<Admission>;
  readonly inFlight: number;
}

interface Deps {
  readonly quotaLeases: QuotaLeases;
  readonly journal: UsageJournal;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Calls that were in flight when the process was killed are charged their reservation. */
export function createAccounting({ quotaLeases, journal, now, newId }: Deps): Accounting {
  const tokens = createAccountNames(tokensAccount);
  const costs = createAccountNames(costAccount);
  for (const reservation of journal.state.open.values()) settle(reservation, { ...reservation, estimated: true }, 1);

  function settle(reservation: Reservation, used: Used, requests: 0 | 1): void {
    const amounts = amountsUsed(reservation, used);
    for (const [at, [account, reserved]] of reservation.amounts.entries())
      quotaLeases.settle(account, reserved, amounts[at]?.[1] ?? 0);
    const { promptTokens, completionTokens, costMicrocents, estimated, aboveReservation } = used;
    const counts = { promptTokens, completionTokens, costMicrocents, estimated };
    const usage = { ...counts, ...(aboveReservation && { aboveReservation }) };
    // The state has the usage even if the disk fails; if the line is not on disk, a restart charges the reservation.
    journal.append({ t: "used", id: reservation.id, used: usage, requests }).catch(ignoreLogged);
  }

  return {
    countRequest(key) {
      if (key.rateLimitRpm === undefined) return { kind: "taken" };
      return quotaLeases.tryLease(rpmAccount(key.id), key.organizationId, 1);
    },

    async admit(key, organization, estimate) {
      if (journal.isFull) return { kind: "unavailable" };
      const period = periodOf(now());
      const requested: { readonly limit: "tokens" | "cost"; readonly account: string; readonly amount: number }[] = [];
      if (key.monthlyTokenLimit !== undefined) {
        const amount = estimate.promptTokens + estimate.completionTokens;
        requested.push({ limit: "tokens", account: tokens.of(key.id, period), amount });
      }
      requested.push({ limit: "cost", account: costs.of(organization.id, period), amount: estimate.costMicrocents });
      const amounts: Amount[] = [];
      const release = () => {
        for (const [account, amount] of amounts) quotaLeases.settle(account, amount, 0);
      };
      for (const { limit, account, amount } of requested) {
        const isOpen = limit === "cost" && organization.circuitOpenPeriod === period;
        const taken: LeaseResult = isOpen
          ? { kind: "refused", remaining: 0, retryInMs: 0 }
          : await quotaLeases.tryLease(account, organization.id, amount);
        if (taken.kind === "taken") {
          amounts.push([account, amount]);
          continue;
        }
        release();
        return taken.kind === "refused"
          ? { kind: "refused", limit, remaining: taken.remaining, requested: amount }
          : taken;
      }
      const reservation: Reservation = { ...estimate, id: newId(), at: now(), amounts };
      try {
        await journal.append({ t: "reserve", call: reservation });
      } catch {
        settle(reservation, nothing, 0);
        return { kind: "unavailable" };
      }
      let isSettled = false;
      const once = (used: Used, requests: 0 | 1) => {
        if (isSettled) return;
        isSettled = true;
        settle(reservation, used, requests);
      };
      return {
        kind: "admitted",
        call: {
          reservation,
          settle: (used) => once(used, 1),
          cancel: () => once(nothing, 0),
        },
      };
    },

    get inFlight() {
      return journal.state.open.size;
    },
  };
}

/** Account names of the current month, cached so that all calls share one string. */
function createAccountNames(nameOf: (subject: string, period: string) => string) {
  let names = new Map<string, string>();
  let month = "";
  return {
    of(subject: string, period: string): string {
      if (period !== month) {
        month = period;
        names = new Map();
      }
      let name = names.get(subject);
      if (name === undefined) names.set(subject, (name = nameOf(subject, period)));
      return name;
    },
  };
}
