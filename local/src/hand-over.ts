/** Reason of a stop after which another supervisor adopts the machines, which continue to run. */
const handOver = new Error("handed over to another supervisor");

/** Stops the supervisor without its machines. */
export function handOverTo(stop: AbortController): void {
  stop.abort(handOver);
}

/** True if the signal's stop leaves the machines to another supervisor. */
export function isHandOver(signal: AbortSignal): boolean {
  return signal.reason === handOver;
}
