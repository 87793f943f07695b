/**
 * So long a right to be the primary lasts, from when its agent asked for it. The keeper ends the engine by then, and controllers
 * wait it out, with a margin for clocks and pauses: both have to mean the same.
 */
export const rightMs = 6_000;
