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
import { chargesOf, type QuotaLeases } from "../quota-lease/quota-leases.ts";
import { type UsageJournal, ignoreLogged } from "../journal/journal.ts";
import type { Batch, Settlement } from "../journal/journal-state.ts";

/** Feed between a proxy process and a controller: configuration and quota leases arrive, usage is sent. */
export interface ControllerFeed extends Feed<ProcessFrame, FeedFrame> {
  /** Sends the settlements since the last batch, if the controllers have confirmed the last batch. */
  sendSettlements(): void;
  readonly isConnected: boolean;
}

interface Deps {
  readonly processId: string;
  /** host:port of the process's listeners, also before they are open. */
  readonly listeners: readonly string[];
  readonly configuration: Configuration;
  readonly quotaLeases: QuotaLeases;
  readonly journal: UsageJournal;
  /** Called when a changed configuration is in effect. */
  readonly onConfigured: () => void;
  readonly log: Log;
}

/** Maximum number of accounts in a batch, bounded by an etcd transaction. */
const maxAccounts = 30;
const maxSettlements = 2_000;
const hourMs = 3_600_000;

export function createControllerFeed(deps: Deps): ControllerFeed {
  const { processId, listeners: ownListeners, configuration, quotaLeases, journal, onConfigured, log } = deps;
  const { state } = journal;
  let send: ((frame: ProcessFrame) => void) | undefined;
  let isConnected = false;
  let isSending = false;
  /** True if the last batch did not include all pending settlements. */
  let hasBacklog = false;
  let requests = 0n;

  function sendFrame(frame: Parameters<typeof create<typeof ProcessFrameSchema>>[1]): void {
    send?.(create(ProcessFrameSchema, frame));
  }

  function sendSettlements(): void {
    if (!isConnected || isSending) return;
    if (state.batches.length === 0 && state.unsent.length > 0) {
      const count = batchSize(state.unsent);
      hasBacklog = count < state.unsent.length;
      journal.append({ t: "batch", n: state.newest + 1, count }).catch(ignoreLogged);
    }
    const [batch] = state.batches;
    if (batch === undefined) return;
    isSending = true;
    // A sent batch must be the same after a restart.
    journal.sync().then(
      () => sendFrame({ frame: { case: "settlements", value: settlementsOf(batch) } }),
      () => {
        isSending = false;
      },
    );
  }

  function posted(n: number): void {
    const confirmed = state.batches.filter((batch) => batch.n <= n);
    journal.append({ t: "landed", n }).catch(ignoreLogged);
    quotaLeases.posted(confirmed.flatMap(chargesOf));
    isSending = false;
    // Small batches wait for more settlements, since each batch is a write of journal, accounts and usage.
    if (hasBacklog || state.batches.length > 0) sendSettlements();
  }

  function handleFrame(frame: FeedFrame["frame"], controller: string): ProcessFrame | undefined {
    switch (frame.case) {
      case "welcome": {
        const { landedBatch, leases } = frame.value;
        posted(Number(landedBatch));
        const leased = new Map(leases.map(({ account, amount }) => [account, Number(amount)]));
        quotaLeases.connected(leased, ({ account, organizationId, need, min, reserved }) => {
          requests += 1n;
          const value = {
            id: requests,
            account,
            organizationId,
            need: BigInt(need),
            least: BigInt(min),
            reserved: BigInt(reserved),
          };
          sendFrame({ frame: { case: "leaseRequest", value } });
        });
        isConnected = true;
        sendSettlements();
        log.info("following controller", { controller, leases: leases.length });
        return undefined;
      }
      case "configuration":
        if (!configuration.apply(frame.value)) return undefined;
        onConfigured();
        return create(ProcessFrameSchema, { frame: { case: "served", value: { revision: frame.value.revision } } });
      case "grant":
        quotaLeases.granted(frame.value.account, Number(frame.value.amount), Number(frame.value.remaining));
        return undefined;
      case "recall": {
        const { id, account, need, exactly } = frame.value;
        const { amount, reserved } = quotaLeases.recalled(account, Number(need), exactly);
        const value = { recallId: id, account, amount: BigInt(amount), reserved: BigInt(reserved) };
        // A released amount must not reappear after a restart.
        const written = amount > 0 ? journal.sync() : Promise.resolve();
        written.then(
          () => sendFrame({ frame: { case: "release", value } }),
          (error: unknown) => log.error("quota not released", { error }),
        );
        return undefined;
      }
      case "landed":
        posted(Number(frame.value.batch));
        return undefined;
      default:
        return undefined;
    }
  }

  return {
    method: grpcService(InferenceFeedService).follow,
    firstMessage() {
      const listeners = reportedListeners(endpointsOf(ownListeners));
      return create(ProcessFrameSchema, { frame: { case: "hello", value: { processId, listeners } } });
    },
    onOpen(nextSend) {
      send = nextSend;
    },
    apply: ({ frame }, controller) => handleFrame(frame, controller),
    onEnd() {
      send = undefined;
      isConnected = false;
      isSending = false;
      quotaLeases.disconnected();
    },
    sendSettlements,
    get isConnected() {
      return isConnected;
    },
  };
}

/** Number of settlements in the next batch. */
function batchSize(settlements: readonly Settlement[]): number {
  const accounts = new Set<string>();
  let count = 0;
  for (const { amounts } of settlements.slice(0, maxSettlements)) {
    for (const [account] of amounts) accounts.add(account);
    if (accounts.size > maxAccounts) break;
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
  const above = new Map(
    batch.settlements.flatMap(({ amounts, aboveReservation, provider, model }) =>
      aboveReservation === true ? amounts.map(([account]): [string, string] => [account, `${provider}/${model}`]) : [],
    ),
  );
  for (const settlement of batch.settlements) {
    // A call without usage releases its reservation and has no usage row.
    if (settlement.requests === 0) continue;
    const row = rowOf(settlement);
    // The parts contain no spaces.
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
      modelAboveReservation: above.get(account) ?? "",
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
