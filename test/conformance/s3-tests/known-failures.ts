/** Tests that fail, with their reasons. */
export const knownFailures: Readonly<Record<string, string>> = {};
