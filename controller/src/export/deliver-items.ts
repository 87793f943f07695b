import type { EncodeContext, Encoder, ExportRequest } from "./destinations/destination.ts";
import type { ExportItem } from "./export-item.ts";
import { messageOf, type Verdict } from "./destinations/verdict.ts";
import type { Configuration } from "./metrics-export.ts";

/** Counts of the items of a completed delivery by their outcome. None of them is sent again. */
export interface Delivered {
  readonly taken: number;
  readonly refused: number;
  readonly tooOld: number;
  /** Status and message about items that the destination did not accept; undefined if there are none. */
  readonly detail: string | undefined;
}

/** The destination accepts no items now. Those of the batch are sent again by a later tick. */
export class DeliveryFailed extends Error {
  override readonly name = "DeliveryFailed";
  /** Delay that the destination requested (Retry-After), in milliseconds. */
  readonly afterMs: number | undefined;
  /** The limit of requests was reached before all refused items were found: send smaller batches. */
  readonly isTooMixed: boolean;

  constructor(
    detail: string,
    { afterMs, isTooMixed = false }: { afterMs?: number | undefined; isTooMixed?: boolean } = {},
  ) {
    super(detail);
    this.afterMs = afterMs;
    this.isTooMixed = isTooMixed;
  }
}

export interface DeliverDeps<I> {
  readonly encoder: Encoder<I>;
  readonly configuration: Configuration;
  readonly context: EncodeContext;
  send(request: ExportRequest<unknown>): Promise<Verdict>;
  wait(ms: number): Promise<void>;
  /** True if the time is over: a failed request is not retried any more. False by default. */
  isLate?(): boolean;
}

const triesMax = 3;
const firstWaitMs = 1_000;
/** Longest delay within a tick; for a longer one the next tick retries. */
const waitMaxMs = 10_000;
/** Limit of requests per batch, enough to find every refused item among `minBatchItems`. */
const requestsMax = 256;
/** Number of items whose refused ones are always found within `requestsMax`. */
export const minBatchItems = 64;

/**
 * Sends items to the destination in order, one request at a time. Refused items are found by bisection and dropped.
 * Items that are too old are found by time: items of one node and one time are sent, and dropped, together.
 * Throws DeliveryFailed if the destination accepts no items; then none counts as dropped.
 */
export async function deliverItems<I extends ExportItem>(
  items: readonly I[],
  deps: DeliverDeps<I>,
): Promise<Delivered> {
  const { encoder, configuration, context, send, wait, isLate = () => false } = deps;
  const totals = { taken: 0, refused: 0, tooOld: 0, detail: undefined as string | undefined };
  let requests = 0;

  async function deliver(some: readonly I[]): Promise<void> {
    if (some.length === 0) return;
    for (const request of await encoder.encode(some, configuration, context)) await settle(request);
  }

  async function settle(request: ExportRequest<I>): Promise<void> {
    let isPrepared = false;
    for (let tries = 1; ; tries += 1) {
      requests += 1;
      if (requests > requestsMax) throw new DeliveryFailed(totals.detail ?? messageOf(400), { isTooMixed: true });
      const verdict = await send(request);
      switch (verdict.kind) {
        case "accepted":
          totals.taken += request.items.length;
          return;
        case "stop":
          throw new DeliveryFailed(verdict.detail);
        case "prepare":
          if (isPrepared || request.needs === undefined) throw new DeliveryFailed(verdict.detail);
          isPrepared = true;
          await prepare(await request.needs());
          continue;
        case "divide":
          return verdict.reason === "too_old"
            ? divideByTime(request.items, verdict.detail)
            : divide(request.items, verdict.detail);
        case "smaller":
          return divide(request.items, verdict.detail);
        case "partly": {
          totals.taken += request.items.length - verdict.refused - verdict.again.length;
          totals.refused += verdict.refused;
          if (verdict.refused > 0) totals.detail = verdict.detail;
          if (verdict.again.length === 0) return;
          if (tries >= triesMax) throw new DeliveryFailed(verdict.detail);
          await wait(firstWaitMs * 2 ** (tries - 1));
          const remaining = verdict.again.flatMap((index) => request.items[index] ?? []);
          const [again, ...more] = await encoder.encode(remaining, configuration, context);
          for (const each of more) await settle(each);
          if (again === undefined) return;
          request = again;
          continue;
        }
        case "later": {
          const afterMs = verdict.afterMs ?? firstWaitMs * 2 ** (tries - 1);
          if (tries >= triesMax || afterMs > waitMaxMs || isLate())
            throw new DeliveryFailed(verdict.detail, { afterMs: verdict.afterMs });
          await wait(afterMs);
        }
      }
    }
  }

  async function divide(some: readonly I[], detail: string): Promise<void> {
    if (some.length <= 1) return drop(some, "refused", detail);
    const half = Math.ceil(some.length / 2);
    await deliver(some.slice(0, half));
    await deliver(some.slice(half));
  }

  async function divideByTime(some: readonly I[], detail: string): Promise<void> {
    const byMoment = Map.groupBy(some, ({ origin, timeMs }) => `${timeMs} ${origin.nodeId}`);
    const moments = [...byMoment.values()].toSorted(([a], [b]) => (a?.timeMs ?? 0) - (b?.timeMs ?? 0));
    if (moments.length <= 1) return drop(some, "tooOld", detail);
    const half = Math.ceil(moments.length / 2);
    await deliver(moments.slice(0, half).flat());
    await deliver(moments.slice(half).flat());
  }

  function drop(some: readonly I[], reason: "refused" | "tooOld", detail: string): void {
    totals[reason] += some.length;
    totals.detail = detail;
  }

  async function prepare(needed: readonly ExportRequest<never>[]): Promise<void> {
    for (const each of needed) {
      const verdict = await send(each);
      if (verdict.kind !== "accepted") throw new DeliveryFailed("detail" in verdict ? verdict.detail : "");
    }
  }

  await deliver(items);
  return totals;
}
