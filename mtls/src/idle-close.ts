/** Closes a resource when its last use ends. */
export interface IdleClose {
  /** Starts a use; the returned function ends it. */
  begin(): () => void;
  /** Closes the resource when the last use has ended; no further use starts. */
  close(): void;
}

/**
 * For gRPC clients that are replaced. After `close`, grpc-js continues running calls but fails those that are still
 * connecting, and drops the others at the connection's next keepalive.
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
