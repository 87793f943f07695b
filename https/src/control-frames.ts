import type { ServerHttp2Session } from "node:http2";

/** A client pings each few seconds, or once for each window's worth of data, and settles once. */
const perSecond = 50;
const burst = 1_000;

/**
 * Ends a session whose client sends PING and SETTINGS frames without end: each is answered, and none is a request that any other
 * limit would count.
 */
export function limitControl(session: ServerHttp2Session): void {
  let left = burst;
  let since = performance.now();
  const count = () => {
    const now = performance.now();
    left = Math.min(burst, left + ((now - since) / 1_000) * perSecond) - 1;
    since = now;
    if (left < 0) session.destroy(undefined, 11 /* ENHANCE_YOUR_CALM */);
  };
  session.on("ping", count);
  session.on("remoteSettings", count);
}
