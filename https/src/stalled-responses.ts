import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

type Response = ServerResponse | Http2ServerResponse;

/** Aborts responses that the client does not read. */
export interface StalledResponses {
  /** Watches a response until it ends or is aborted. */
  watch(response: Response): void;
  close(): void;
}

/** Buffered bytes of a response, and bytes sent on its connection. */
interface Progress {
  pending: number;
  sent: number;
  unchangedChecks: number;
}

const checksPerTimeout = 12;

/** Aborts a response without progress for `stalledMs`, checked twelve times in that period. */
export function createStalledResponses(stallTimeoutMs: number): StalledResponses {
  const responses = new Map<Response, Progress>();
  const timer = setInterval(check, stallTimeoutMs / checksPerTimeout);
  timer.unref();

  function check(): void {
    for (const [response, progress] of responses) {
      const { pending, sent } = stateOf(response);
      const isStuck = pending > 0 && pending === progress.pending && sent === progress.sent;
      progress.unchangedChecks = isStuck ? progress.unchangedChecks + 1 : 0;
      progress.pending = pending;
      progress.sent = sent;
      if (progress.unchangedChecks >= checksPerTimeout) abort(response);
    }
  }

  return {
    watch(response) {
      responses.set(response, { pending: 0, sent: 0, unchangedChecks: 0 });
      response.once("close", () => responses.delete(response));
    },
    close: () => clearInterval(timer),
  };
}

function stateOf(response: Response): { pending: number; sent: number } {
  // With HTTP/2 each stream has its own buffer; other streams on the connection may make progress.
  if ("stream" in response) return { pending: response.stream?.writableLength ?? 0, sent: 0 };
  const { socket } = response;
  return { pending: socket?.writableLength ?? 0, sent: socket?.bytesWritten ?? 0 };
}

function abort(response: Response): void {
  if ("stream" in response) response.stream?.close(8 /* CANCEL */);
  else response.destroy();
}
