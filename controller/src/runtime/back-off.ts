/** Wait before the next try after `failures` failed ones in a row: doubling, never the same for two that began together. */
export function backOffMs(failures: number, random: () => number, { initialMs = 100, maxMs = 60_000 } = {}): number {
  const full = Math.min(maxMs, initialMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random();
}
