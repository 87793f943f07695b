import type { EncodeContext, Encoder, ExportRequest } from "./destinations/destination.ts";
import type { Verdict } from "./destinations/verdict.ts";
import type { Configuration } from "./metrics-export.ts";

/** What became of items that were brought to a destination. None of them is to be sent again. */
export interface Delivered {
  readonly taken: number;
  readonly refused: number;
  readonly tooOld: number;
  /** Status and our own words about what was refused; undefined when nothing was. */
  readonly why: string | undefined;
}

/** The destination takes nothing now. Whatever it took of the batch it may get again. */
export class DeliveryFailed extends Error {
  override readonly name = "DeliveryFailed";
  /** When the destination asks to be asked again, in milliseconds from now. */
  readonly afterMs: number | undefined;
  /** The items were in too many pieces that were refused: fewer at once are needed to tell which. */
  readonly isTooMixed: boolean;

  constructor(
    why: string,
    { afterMs, isTooMixed = false }: { afterMs?: number | undefined; isTooMixed?: boolean } = {},
  ) {
    super(why);
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
  /** A request that failed is not tried again once this is true; false unless given. */
  isLate?(): boolean;
}

const triesMax = 3;
const firstWaitMs = 1_000;
/** A destination that asks for more is asked again at a later tick. */
const waitMaxMs = 10_000;
/** Of one batch: enough to find each refused item among the fewest that are sent at once. */
const requestsMax = 256;
/** So few items are always told apart within `requestsMax`. */
export const fewestItems = 64;

/**
 * Brings items to the destination in their order, one request at a time. What is refused is found by halves and dropped alone.
 * Throws DeliveryFailed, with nothing dropped.
 */
export async function deliverItems<I>(items: readonly I[], deps: DeliverDeps<I>): Promise<Delivered> {
  const { encoder, configuration, context, send, wait, isLate = () => false } = deps;
  const done = { taken: 0, refused: 0, tooOld: 0, why: undefined as string | undefined };
  let requests = 0;

  async function bring(some: readonly I[]): Promise<void> {
    if (some.length === 0) return;
    for (const request of await encoder.encode(some, configuration, context)) await settle(request);
  }

  async function settle(request: ExportRequest<I>): Promise<void> {
    let isPrepared = false;
    for (let tries = 1; ; tries += 1) {
      requests += 1;
      if (requests > requestsMax)
        throw new DeliveryFailed("HTTP 400: the destination refuses the data", { isTooMixed: true });
      const verdict = await send(request);
      switch (verdict.kind) {
        case "accepted":
          done.taken += request.items.length;
          return;
        case "stop":
          throw new DeliveryFailed(verdict.why);
        case "prepare":
          if (isPrepared || request.needs === undefined) throw new DeliveryFailed(verdict.why);
          isPrepared = true;
          await prepare(await request.needs());
          continue;
        case "divide":
          return divide(request.items, verdict.reason === "too_old" ? "tooOld" : "refused", verdict.why);
        case "smaller":
          return divide(request.items, "refused", verdict.why);
        case "partly": {
          done.taken += request.items.length - verdict.refused - verdict.again.length;
          done.refused += verdict.refused;
          if (verdict.refused > 0) done.why = verdict.why;
          if (verdict.again.length === 0) return;
          if (tries >= triesMax) throw new DeliveryFailed(verdict.why);
          await wait(firstWaitMs * 2 ** (tries - 1));
          const rest = verdict.again.flatMap((index) => request.items[index] ?? []);
          const [again, ...more] = await encoder.encode(rest, configuration, context);
          for (const each of more) await settle(each);
          if (again === undefined) return;
          request = again;
          continue;
        }
        case "later": {
          const afterMs = verdict.afterMs ?? firstWaitMs * 2 ** (tries - 1);
          if (tries >= triesMax || afterMs > waitMaxMs || isLate())
            throw new DeliveryFailed(verdict.why, { afterMs: verdict.afterMs });
          await wait(afterMs);
        }
      }
    }
  }

  async function divide(some: readonly I[], reason: "refused" | "tooOld", why: string): Promise<void> {
    if (some.length <= 1) {
      done[reason] += some.length;
      done.why = why;
      return;
    }
    const half = Math.ceil(some.length / 2);
    await bring(some.slice(0, half));
    await bring(some.slice(half));
  }

  async function prepare(needed: readonly ExportRequest<never>[]): Promise<void> {
    for (const each of needed) {
      const verdict = await send(each);
      if (verdict.kind !== "accepted") throw new DeliveryFailed("why" in verdict ? verdict.why : "");
    }
  }

  await bring(items);
  return done;
}
