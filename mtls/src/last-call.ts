/** Closes something when nobody uses it any more. */
export interface LastCall {
  /** A use begins; what it answers ends it. */
  begin(): () => void;
  /** No use begins from now on: closes at the end of the last one. */
  close(): void;
}

/**
 * For gRPC clients that give way to newer ones. grpc-js lets calls go on after `close`, but fails those that are still
 * connecting, and drops the others when the keepalive of their connection is next due.
 */
export function createLastCall(close: () => void): LastCall {
  let running = 0;
  let closing = false;
  const closeWhenIdle = () => {
    if (closing && running === 0) close();
  };
  return {
    begin() {
      running += 1;
      let over = false;
      return () => {
        if (over) return;
        over = true;
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
