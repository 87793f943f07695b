/** Closes a resource when its last use ends. */
export interface IdleClose {
  /** Starts a use; the returned function ends it. */
  begin(): () => void;
  /** Closes the resource when the last use has ended; no further use starts. */
  close(): void;
}

/**
 * Closes a gRPC client that was replaced once none of its calls runs. `close` of grpc-js fails calls that are still
 * connecting, and drops the running ones at the connection's next keepalive.
 */
export function createIdleClose(close: () => void): IdleClose {
  let running = 0;
  let closing = false;
  const closeWhenIdle = () => {
    if (closing && running === 0) close();
  };
  return {
    begin() {
      running += 1;
      let isEnded = false;
      return () => {
        if (isEnded) return;
        isEnded = true;
        running -= 1;
        closeWhenIdle();
      };
    },
    close() {
      closing = true;
      closeWhenIdle();
    },
  };
}
