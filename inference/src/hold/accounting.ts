import { costAccount, periodOf, rpmAccount, tokensAccount } from "@holdfast/common/inference/accounts.ts";
import type { KeySettings, Organization } from "../configuration/configuration.ts";
import { type Journal, logged } from "../journal/journal.ts";
import {
  type Amount,
  amountsUsed,
  type CallNames,
  type Reservation,
  type Tokens,
  type Used,
} from "../journal/journal-state.ts";
import type { HoldBook, Taken } from "./hold-book.ts";

/** What a call asks for. */
export interface Wanted extends CallNames, Tokens {
  readonly costMicrocents: number;
}

export type Admission =
  | { readonly kind: "admitted"; readonly call: AdmittedCall }
  | { readonly kind: "refused"; readonly what: "tokens" | "cost"; readonly left: number; readonly asked: number }
  | { readonly kind: "unavailable" };

const nothing: Used = { promptTokens: 0, completionTokens: 0, costMicrocents: 0, estimated: false };

/** A call whose reservation is on disk. It is settled once. */
export interface AdmittedCall {
  readonly reservation: Reservation;
  settle(used: Used): void;
  /** It never went out, or its provider charges nothing for it. */
  free(): void;
}

/** Requests, reservations and settlements of this process. */
export interface Accounting {
  /** One request of a key; what is taken stays taken. */
  countRequest(key: KeySettings): Promise<Taken> | Taken;
  admit(key: KeySettings, organization: Organization, wanted: Wanted): Promise<Admission>;
  readonly underWay: number;
}

interface Deps {
  readonly book: HoldBook;
  readonly journal: Journal;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Calls that an earlier process was killed in have cost what they had reserved. */
export function createAccounting({ book, journal, now, newId }: Deps): Accounting {
  const tokens = createAccountNames(tokensAccount);
  const costs = createAccountNames(costAccount);
  for (const reservation of journal.state.open.values()) settle(reservation, { ...reservation, estimated: true }, 1);

  function settle(reservation: Reservation, used: Used, requests: 0 | 1): void {
    const amounts = amountsUsed(reservation, used);
    for (const [at, [account, reserved]] of reservation.amounts.entries())
      book.settle(account, reserved, amounts[at]?.[1] ?? 0);
    const { promptTokens, completionTokens, costMicrocents, estimated } = used;
    const its = { promptTokens, completionTokens, costMicrocents, estimated };
    // The state has it whether the disk takes it or not; without it a restart charges the reservation.
    journal.append({ t: "used", id: reservation.id, used: its, requests }).catch(logged);
  }

  return {
    countRequest(key) {
      if (key.rateLimitRpm === undefined) return { kind: "taken" };
      return book.take(rpmAccount(key.id), key.organizationId, 1);
    },

    async admit(key, organization, wanted) {
      if (journal.isFull) return { kind: "unavailable" };
      const period = periodOf(now());
      const asked: { readonly what: "tokens" | "cost"; readonly account: string; readonly amount: number }[] = [];
      if (key.monthlyTokenLimit !== undefined) {
        const amount = wanted.promptTokens + wanted.completionTokens;
        asked.push({ what: "tokens", account: tokens.of(key.id, period), amount });
      }
      asked.push({ what: "cost", account: costs.of(organization.id, period), amount: wanted.costMicrocents });
      const amounts: Amount[] = [];
      const giveBack = () => {
        for (const [account, amount] of amounts) book.settle(account, amount, 0);
      };
      for (const { what, account, amount } of asked) {
        const isOpen = what === "cost" && organization.circuitOpenPeriod === period;
        const taken: Taken = isOpen
          ? { kind: "refused", left: 0, retryInMs: 0 }
          : await book.take(account, organization.id, amount);
        if (taken.kind === "taken") {
          amounts.push([account, amount]);
          continue;
        }
        giveBack();
        return taken.kind === "refused" ? { kind: "refused", what, left: taken.left, asked: amount } : taken;
      }
      const reservation: Reservation = { ...wanted, id: newId(), at: now(), amounts };
      try {
        await journal.append({ t: "reserve", its: reservation });
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
          free: () => once(nothing, 0),
        },
      };
    },

    get underWay() {
      return journal.state.open.size;
    },
  };
}

/** The names of this month's accounts, each one text however many calls have it. */
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
