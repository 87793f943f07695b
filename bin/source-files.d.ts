/** Paths in the checkout of all files below a folder of it; "" is all of it. */
export function sourceFiles(folder?: string): string[];
