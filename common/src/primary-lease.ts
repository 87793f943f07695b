/**
 * Duration of a primary lease in milliseconds, from the time of the agent's request. The keeper stops the engine at its
 * end, and a controller waits for it, with a margin for clocks and pauses, before another primary may start.
 */
export const primaryLeaseMs = 6_000;
