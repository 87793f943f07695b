/**
 * How Node is to run a controller, whoever starts it. All else stands still while what became garbage young is told from
 * what is in use, and that takes as long as there is in use: with the 32 MB that Node takes on a large machine, tens of
 * milliseconds each time that a fleet changes 500 times a second; with a quarter of it four times as often, a quarter as long.
 */
export const controllerFlags = ["--max-semi-space-size=8"] as const;
