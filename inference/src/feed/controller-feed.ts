import { create } from "@bufbuild/protobuf";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type FeedFrame,
  InferenceFeedService,
  type ProcessFrame,
  ProcessFrameSchema,
  type Settlements,
} from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";
import type { Configuration } from "../configuration/configuration.ts";
import { chargesOf, type HoldBook } from "../hold/hold-book.ts";
import { type Journal, logged } from "../journal/journal.ts";
import type { Batch, Settlement } from "../journal/journal-state.ts";

/** What a process hears from controllers and tells them: configuration, holds, and what calls used. */
export interface ControllerFeed extends Feed<ProcessFrame, FeedFrame> {
  /** Sends what ended since the last time, if the controllers have what was sent before. */
  sendSettlements(): void;
  readonly isConnected: boolean;
}

interface Deps {
  readonly processId: string;
  /** host:port that the process listens on, or will. */
  readonly listens: readonly string[];
  readonly configuration: Configuration;
  readonly book: HoldBook;
  readonly journal: Journal;
  /** The configuration changed and is served. */
  readonly onConfigured: () => void;
  readonly log: Log;
}

/** An etcd transaction has room for so many accounts. */
const accountsMax = 30;
const settlementsMax = 2_000;
const hourMs = 3_600_000;

export function createControllerFeed(deps: Deps): ControllerFeed {
  const { processId, listens, configuration, book, journal, onConfigured, log } = deps;
  const { state } = journal;
  let send: ((frame: ProcessFrame) => void) | undefined;
  let isWelcome = false;
  let isSending = false;
  /** The last batch had no room for all that waited. */
  let isBehind = false;
  let requests = 0n;

  function tell(frame: Parameters<typeof create<typeof ProcessFrameSchema>>[1]): void {
    send?.(create(ProcessFrameSchema, frame));
  }

  function sendSettlements(): void {
    if (!isWelcome || isSending) return;
    if (state.batches.length === 0 && state.unsent.length > 0) {
      const count = batchSize(state.unsent);
      isBehind = count < state.unsent.length;
      journal.append({ t: "batch", n: state.newest + 1, count }).catch(logged);
    }
    const [batch] = state.batches;
    if (batch === undefined) return;
    isSending = true;
    // A batch that was sent must be the same after a restart.
    journal.sync().then(
      () => tell({ frame: { case: "settlements", value: settlementsOf(batch) } }),
      () => {
        isSending = false;
      },
    );
  }

  function landed(n: number): void {
    const those = state.batches.filter((batch) => batch.n <= n);
    journal.append({ t: "landed", n }).catch(logged);
    book.landed(those.flatMap(chargesOf));
    isSending = false;
    // Few wait for others to come: each batch is a write of the journal, of accounts and of usage.
    if (isBehind || state.batches.length > 0) sendSettlements();
  }

  function take(frame: FeedFrame["frame"], controller: string): ProcessFrame | undefined {
    switch (frame.case) {
      case "welcome": {
        const { landedBatch, holds } = frame.value;
        landed(Number(landedBatch));
        const held = new Map(holds.map(({ account, amount }) => [account, Number(amount)]));
        book.welcome(held, ({ account, organizationId, need, least, reserved }) => {
          requests += 1n;
          const value = {
            id: requests,
            account,
            organizationId,
            need: BigInt(need),
            least: BigInt(least),
            reserved: BigInt(reserved),
          };
          tell({ frame: { case: "holdRequest", value } });
        });
        isWelcome = true;
        sendSettlements();
        log.info("controller follows", { controller, holds: holds.length });
        return undefined;
      }
      case "configuration":
        if (!configuration.apply(frame.value)) return undefined;
        onConfigured();
        return create(ProcessFrameSchema, { frame: { case: "served", value: { revision: frame.value.revision } } });
      case "grant":
        book.granted(frame.value.account, Number(frame.value.amount), Number(frame.value.left));
        return undefined;
      case "recall": {
        const { id, account, need, exactly } = frame.value;
        const { amount, reserved } = book.recalled(account, Number(need), exactly);
        const value = { recallId: id, account, amount: BigInt(amount), reserved: BigInt(reserved) };
        // What is given back must not come back to life with the process.
        const written = amount > 0 ? journal.sync() : Promise.resolve();
        written.then(
          () => tell({ frame: { case: "release", value } }),
          (error: unknown) => log.error("hold not released", { error }),
        );
        return undefined;
      }
      case "landed":
        landed(Number(frame.value.batch));
        return undefined;
      default:
        return undefined;
    }
  }

  return {
    method: grpcService(InferenceFeedService).follow,
    greet() {
      const listeners = reportedListeners(endpointsOf(listens));
      return create(ProcessFrameSchema, { frame: { case: "hello", value: { processId, listeners } } });
    },
    opened(nextSend) {
      send = nextSend;
    },
    take: ({ frame }, controller) => take(frame, controller),
    ended() {
      send = undefined;
      isWelcome = false;
      isSending = false;
      book.alone();
    },
    sendSettlements,
    get isConnected() {
      return isWelcome;
    },
  };
}

/** How many of them go into one batch. */
function batchSize(settlements: readonly Settlement[]): number {
  const accounts = new Set<string>();
  let count = 0;
  for (const { amounts } of settlements.slice(0, settlementsMax)) {
    for (const [account] of amounts) accounts.add(account);
    if (accounts.size > accountsMax) break;
    count += 1;
  }
  return Math.max(1, count);
}

function settlementsOf(batch: Batch): Settlements {
  const organizations = new Map(
    batch.settlements.flatMap(({ amounts, organizationId }) =>
      amounts.map(([account]): [string, string] => [account, organizationId]),
    ),
  );
  const rows = new Map<string, ReturnType<typeof rowOf>>();
  for (const settlement of batch.settlements) {
    // It came to nothing: its reservation ends, and there is nothing to tell.
    if (settlement.requests === 0) continue;
    const row = rowOf(settlement);
    // No part of it has a space.
    const name = `${row.hourMs} ${row.organizationId} ${row.keyId} ${row.provider} ${row.model}`;
    const before = rows.get(name);
    if (before === undefined) {
      rows.set(name, row);
      continue;
    }
    for (const figure of figures) before[figure] += row[figure];
  }
  return {
    $typeName: "holdfast.inference.v1.Settlements",
    batch: BigInt(batch.n),
    charges: chargesOf(batch).map(([account, amount]) => ({
      $typeName: "holdfast.inference.v1.AccountCharge",
      account,
      organizationId: organizations.get(account) ?? "",
      amount: BigInt(amount),
    })),
    rows: [...rows.values()],
  };
}

const figures = ["requests", "promptTokens", "completionTokens", "costMicrocents", "estimatedRequests"] as const;

function rowOf(settlement: Settlement) {
  const { at, organizationId, keyId, model, provider, promptTokens, completionTokens, costMicrocents } = settlement;
  return {
    $typeName: "holdfast.inference.v1.UsageRow" as const,
    hourMs: BigInt(Math.floor(at / hourMs) * hourMs),
    organizationId,
    keyId,
    model,
    provider,
    requests: BigInt(settlement.requests),
    promptTokens: BigInt(promptTokens),
    completionTokens: BigInt(completionTokens),
    costMicrocents: BigInt(costMicrocents),
    estimatedRequests: settlement.estimated ? BigInt(settlement.requests) : 0n,
  };
}
