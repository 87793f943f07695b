import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { type EgressAnswer, retryAfterMsOf } from "./egress-answer.ts";
import { EgressFailure } from "./egress-failure.ts";

interface ExchangeDeps {
  readonly bytesMax: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** What a failure means: it names the deadline, or the caller's own end. */
  readonly failureOf: (error: unknown) => unknown;
  /** Called once, when the exchange ended in whatever way. */
  readonly ended: () => void;
}

/** Past so many bytes that nobody has read the target waits. */
const unreadBytesMax = 64 << 10;
/** What is dropped is read to so many bytes, and for so long, for its connection to serve again. */
const droppedBytesMax = 64 << 10;
const droppedMs = 1_000;

/** A request that is under way, and its answer: undici tells of it, and whoever asked reads it. */
export class Exchange implements Dispatcher.DispatchHandler, EgressAnswer {
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  retryAfterMs: number | undefined;
  readonly body: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => this.#iterator() };
  /** Resolves to this when the head of the answer is there. Rejects with what `failureOf` says. */
  readonly head: Promise<EgressAnswer>;
  readonly #deps: ExchangeDeps;
  readonly #sent: unknown;
  readonly #heads = Promise.withResolvers<EgressAnswer>();
  #controller: Dispatcher.DispatchController | undefined;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #bytes = 0;
  /** All of it is wanted at once: nobody reads it piece by piece. */
  #isGathered = false;
  #isDropped = false;
  #isOver = false;
  #failure: unknown;
  #changed = Promise.withResolvers<void>();

  /** `sent` is the body of the request. */
  constructor(sent: unknown, deps: ExchangeDeps) {
    this.#sent = sent;
    this.#deps = deps;
    this.head = this.#heads.promise;
  }

  /** Ends it from this side. */
  abort(reason: Error): void {
    if (this.#isOver) return;
    this.#end(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) controller.abort(new Error("the request is over"));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (status < 200) return;
    this.status = status;
    this.headers = joined(headers);
    this.retryAfterMs = retryAfterMsOf(this.headers["retry-after"], this.#deps.now());
    this.#heads.resolve(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    if (this.#isDropped) {
      if (this.#bytes > droppedBytesMax) this.abort(new Error("what is dropped is long"));
      return;
    }
    const { bytesMax } = this.#deps;
    if (this.#bytes > bytesMax)
      return this.abort(new EgressFailure("too large", `The answer has more than ${bytesMax} bytes.`));
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes > unreadBytesMax && !this.#isGathered) controller.pause();
    if (!this.#isGathered) this.#wakeUp();
  }

  onResponseEnd(): void {
    this.#end(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#end(error);
  }

  readonly bytes = async (): Promise<Buffer> => {
    this.#isGathered = true;
    this.#controller?.resume();
    while (!this.#isOver) await this.#changed.promise;
    if (this.#failure !== undefined) throw this.#deps.failureOf(this.#failure);
    const [first, ...others] = this.#take();
    return first !== undefined && others.length === 0
      ? first
      : Buffer.concat(first === undefined ? [] : [first, ...others]);
  };

  readonly drop = async (): Promise<void> => {
    this.#isDropped = true;
    this.#bytes = 0;
    this.#take();
    this.#controller?.resume();
    while (!this.#isOver) await this.#changed.promise;
  };

  #end(failure: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    this.#deps.ended();
    if (failure !== undefined) {
      if (this.#sent instanceof Readable) this.#sent.on("error", () => undefined).destroy(failure);
      if (this.status === 0) this.#heads.reject(this.#deps.failureOf(failure));
    }
    this.#wakeUp();
  }

  #take(): Buffer[] {
    const chunks = this.#unread;
    this.#unread = [];
    this.#unreadBytes = 0;
    return chunks;
  }

  /** Wakes whoever waits for more, or for the end: one may drop what another one still reads. */
  #wakeUp(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }

  #iterator(): AsyncIterator<Uint8Array> {
    return {
      next: async () => {
        while (this.#unread.length === 0 && !this.#isOver) await this.#changed.promise;
        const value = this.#unread.shift();
        if (value === undefined) {
          if (this.#failure !== undefined) throw this.#deps.failureOf(this.#failure);
          return { done: true, value: undefined };
        }
        this.#unreadBytes -= value.length;
        if (this.#unreadBytes === 0) this.#controller?.resume();
        return { done: false, value };
      },
      return: () => {
        // Its end may be about to come, and the connection is worth more than a few bytes.
        if (!this.#isOver) {
          const late = setTimeout(() => this.abort(new Error("what is dropped is slow")), droppedMs);
          this.drop()
            .catch(() => undefined)
            .finally(() => clearTimeout(late));
        }
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}

/** Several of one name as one. */
function joined(headers: Readonly<Record<string, string | string[] | undefined>>): Readonly<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) texts[name] = typeof value === "string" ? value : value.join(", ");
  }
  return texts;
}
