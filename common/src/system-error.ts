/** Is it an error of the system with this code, such as ENOENT? */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** Is it an error of the operating system, with words of its own such as "write EPIPE"? */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && /^E[A-Z0-9]+$/.test(error.code);
}
