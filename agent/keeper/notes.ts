const burst = 200;
const perSecond = 1;
const longestLineBytes = 4_096;

/**
 * The keeper's own log, a line in JSON each. Where it goes is on the host, outside of the machine's disk, and what it tells of
 * happens as often as an agent asks for it: so many lines at once, then one a second; a later line counts those left out.
 */
export function createNotes(write: (line: string) => void, monotonicMs: () => number, now: () => number) {
  let level = burst;
  let atMs = monotonicMs();
  let leftOut = 0;
  return (message: string, fields: object): void => {
    const nowMs = monotonicMs();
    level = Math.min(burst, level + ((nowMs - atMs) * perSecond) / 1000);
    atMs = nowMs;
    if (level < 1) {
      leftOut += 1;
      return;
    }
    level -= 1;
    const line = { time: now(), name: "keeper", msg: message, ...(leftOut > 0 && { leftOut }), ...fields };
    leftOut = 0;
    const text = JSON.stringify(line);
    write(`${text.length > longestLineBytes ? JSON.stringify({ time: now(), name: "keeper", msg: message }) : text}\n`);
  };
}
