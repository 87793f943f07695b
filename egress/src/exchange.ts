import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { type EgressResponse, retryAfterMsOf } from "./egress-response.ts";
import { EgressFailure } from "./egress-failure.ts";

interface ExchangeDeps {
  readonly maxBytes: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Converts a failure; it accounts for the deadline and the caller's signal. */
  readonly failureOf: (error: unknown) => unknown;
  /** Called once when the exchange ends. */
  readonly onEnd: () => void;
}

/** Buffered bytes at which the target is paused. */
const maxUnreadBytes = 64 << 10;
/** Bounds for draining a discarded response, so that its connection can be reused. */
const maxDrainBytes = 64 << 10;
const drainTimeoutMs = 1_000;

/** A request in flight and its response: undici reports its events and the caller reads the body. */
export class Exchange implements Dispatcher.DispatchHandler, EgressResponse {
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  retryAfterMs: number | undefined;
  readonly body: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => this.#iterator() };
  /** Resolves to this object when the head of the response arrives. Rejects with the result of `failureOf`. */
  readonly head: Promise<EgressResponse>;
  readonly #deps: ExchangeDeps;
  readonly #sent: unknown;
  readonly #heads = Promise.withResolvers<EgressResponse>();
  #controller: Dispatcher.DispatchController | undefined;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #bytes = 0;
  /** True if the caller reads the complete body into memory, so there is no back-pressure. */
  #isBuffered = false;
  #isDropped = false;
  #isOver = false;
  #failure: unknown;
  #changed = Promise.withResolvers<void>();

  /** `sent` is the request body. */
  constructor(sent: unknown, deps: ExchangeDeps) {
    this.#sent = sent;
    this.#deps = deps;
    this.head = this.#heads.promise;
  }

  /** Aborts the exchange. */
  abort(reason: Error): void {
    if (this.#isOver) return;
    this.#end(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) controller.abort(new Error("the request has ended"));
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
      if (this.#bytes > maxDrainBytes) this.abort(new Error("the dropped response is too long"));
      return;
    }
    const { maxBytes } = this.#deps;
    if (this.#bytes > maxBytes)
      return this.abort(new EgressFailure("too large", `The response has more than ${maxBytes} bytes.`));
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes > maxUnreadBytes && !this.#isBuffered) controller.pause();
    if (!this.#isBuffered) this.#wakeUp();
  }

  onResponseEnd(): void {
    this.#end(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#end(error);
  }

  readonly bytes = async (): Promise<Buffer> => {
    this.#isBuffered = true;
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
    this.#deps.onEnd();
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

  /** Wakes all readers: one may wait for the end while another one reads. */
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
        // Few bytes may remain, and draining them is cheaper than a new connection.
        if (!this.#isOver) {
          const timer = setTimeout(() => this.abort(new Error("the dropped response is too slow")), drainTimeoutMs);
          this.drop()
            .catch(() => undefined)
            .finally(() => clearTimeout(timer));
        }
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}

/** Joins repeated headers. */
function joined(headers: Readonly<Record<string, string | string[] | undefined>>): Readonly<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) texts[name] = typeof value === "string" ? value : value.join(", ");
  }
  return texts;
}
