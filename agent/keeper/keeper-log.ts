const burst = 200;
const perSecond = 1;
const maxLineBytes = 4_096;

/**
 * The keeper's own log, one JSON object a line. It is stored on the host and agents can trigger its lines, so the rate
 * is limited: a burst of 200, then one a second. A later line has the number of lines `dropped`.
 */
export function createKeeperLog(write: (line: string) => void, monotonicMs: () => number, now: () => number) {
  let level = burst;
  let atMs = monotonicMs();
  let dropped = 0;
  return (message: string, fields: object): void => {
    const nowMs = monotonicMs();
    level = Math.min(burst, level + ((nowMs - atMs) * perSecond) / 1000);
    atMs = nowMs;
    if (level < 1) {
      dropped += 1;
      return;
    }
    level -= 1;
    const line = { time: now(), name: "keeper", msg: message, ...(dropped > 0 && { dropped }), ...fields };
    dropped = 0;
    const text = JSON.stringify(line);
    write(`${text.length > maxLineBytes ? JSON.stringify({ time: now(), name: "keeper", msg: message }) : text}\n`);
  };
}
