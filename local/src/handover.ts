/** Reason of a stop after which another supervisor adopts the machines, which continue to run. */
const handover = new Error("handed over to another supervisor");

/** Stops the supervisor without its machines. */
export function stopForHandover(stop: AbortController): void {
  stop.abort(handover);
}

/** True if the signal's stop leaves the machines to another supervisor. */
export function isHandover(signal: AbortSignal): boolean {
  return signal.reason === handover;
}
