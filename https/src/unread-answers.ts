import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

type Response = ServerResponse | Http2ServerResponse;

/** Cuts answers of which nothing is read. */
export interface UnreadAnswers {
  /** Watches an answer until it is sent or cut. */
  watch(response: Response): void;
  close(): void;
}

/** Bytes that wait for the reader, and those that went out on its connection. */
interface Seen {
  pending: number;
  sent: number;
  looks: number;
}

const looksMax = 12;

/** An answer has `unreadMs` to be read on, looked at twelve times. */
export function createUnreadAnswers(unreadMs: number): UnreadAnswers {
  const answers = new Map<Response, Seen>();
  const looking = setInterval(look, unreadMs / looksMax);
  looking.unref();

  function look(): void {
    for (const [response, seen] of answers) {
      const { pending, sent } = stateOf(response);
      const isStuck = pending > 0 && pending === seen.pending && sent === seen.sent;
      seen.looks = isStuck ? seen.looks + 1 : 0;
      seen.pending = pending;
      seen.sent = sent;
      if (seen.looks >= looksMax) cut(response);
    }
  }

  return {
    watch(response) {
      answers.set(response, { pending: 0, sent: 0, looks: 0 });
      response.once("close", () => answers.delete(response));
    },
    close: () => clearInterval(looking),
  };
}

function stateOf(response: Response): { pending: number; sent: number } {
  // Over h2 each stream waits for its own reader; others on the connection may go on.
  if ("stream" in response) return { pending: response.stream?.writableLength ?? 0, sent: 0 };
  const { socket } = response;
  return { pending: socket?.writableLength ?? 0, sent: socket?.bytesWritten ?? 0 };
}

function cut(response: Response): void {
  if ("stream" in response) response.stream?.close(8 /* CANCEL */);
  else response.destroy();
}
