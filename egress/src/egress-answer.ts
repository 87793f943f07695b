import type { Dispatcher } from "undici";
import { EgressFailure } from "./egress-failure.ts";

/** What a target answered. Its body is read once, or dropped. */
export interface EgressAnswer {
  readonly status: number;
  /** By name in lower case; several of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the target asks to wait before the next request; undefined when it does not say. */
  readonly retryAfterMs: number | undefined;
  /** The body as it comes. Throws EgressFailure: `too large` past the bound, `timeout` past the deadline. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body. Throws as `body` does. */
  bytes(): Promise<Buffer>;
  /** Ends it without reading the rest, beyond a little that lets the connection serve again. */
  drop(): Promise<void>;
}

const droppedBytesMax = 64 << 10;

interface AnswerDeps {
  readonly bytesMax: number;
  readonly now: number;
  /** What a failure of the body means: it names the deadline, or the caller's own end. */
  readonly failureOf: (error: unknown) => unknown;
  /** Called once, when the body ended in whatever way. */
  readonly ended: () => void;
}

export function answerOf(
  response: Dispatcher.ResponseData,
  { bytesMax, now, failureOf, ended }: AnswerDeps,
): EgressAnswer {
  const { body, statusCode } = response;
  body.once("close", ended);
  // Without a reader an abort would be nobody's error.
  body.on("error", () => undefined);
  const headers = Object.fromEntries(
    Object.entries(response.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );

  async function* bounded(): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > bytesMax) throw new EgressFailure("too large", `The answer has more than ${bytesMax} bytes.`);
        yield chunk;
      }
    } catch (error) {
      throw failureOf(error);
    } finally {
      body.destroy();
    }
  }

  return {
    status: statusCode,
    headers,
    retryAfterMs: retryAfterMsOf(headers["retry-after"], now),
    body: { [Symbol.asyncIterator]: bounded },
    async bytes() {
      const chunks: Uint8Array[] = [];
      for await (const chunk of bounded()) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
    async drop() {
      await body.dump({ limit: droppedBytesMax }).catch(() => body.destroy());
    },
  };
}

/** Pure: seconds or a date (RFC 9110, 10.2.3), as milliseconds from now, at most a day; undefined for anything else. */
export function retryAfterMsOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), 86_400_000);
}
