/** Maximum length of an error's text that operators see, in characters. */
const textLengthMax = 300;
/** Maximum length of one message that is searched for secrets, in characters; the rest is dropped. */
const searchedLengthMax = 4_096;
const causesMax = 3;

/**
 * Patterns of texts that are, or may contain, a secret: PEM blocks, user information and signatures of URLs,
 * credentials of HTTP and of Holdfast (docs/reference/api-stability.md, "Reserved words"), verifiers of PostgreSQL, and
 * values named like a secret.
 */
// biome-ignore format: a table
const secrets: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [^-]*-----[^]*?(?:-----END [^-]*-----|$)/g,                                  "[redacted]"],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]*@/gi,                                                 "$1[redacted]@"],
  [/([?&])[^=?&\s]*(?:signature|credential|token|key|secret|password)[^=?&\s]*=[^&\s"']*/gi,  "$1[redacted]"],
  [/\b(basic|bearer)\s+[\w+/=.~-]{6,}/gi,                                                   "$1 [redacted]"],
  [/\b(?:hf[a-z]|whs)_[\w.-]{6,}/g,                                                         "[redacted]"],
  [/\bSCRAM-SHA-256\$\S+/g,                                                                 "[redacted]"],
  [/(["']?\b\w*(?:password|passwd|secret|token|authorization|verifier|private_?key)["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;)}]+)/gi, "$1[redacted]"],
];

/** The text of an error with its causes, on one line, without secrets, and at most 300 characters long. */
export function errorText(error: unknown): string {
  const messages: string[] = [];
  let current = error;
  for (let depth = 0; depth <= causesMax && current !== undefined && current !== null; depth += 1) {
    const text = messageOf(current).slice(0, searchedLengthMax);
    if (!messages.some((message) => message.includes(text))) messages.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  const redacted = secrets.reduce(
    (text, [pattern, replacement]) => text.replaceAll(pattern, replacement),
    messages.join(": caused by "),
  );
  // A control character would let an error write to the terminal of an operator.
  const line = redacted.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length <= textLengthMax ? line : `${line.slice(0, textLengthMax - 1)}…`;
}

function messageOf(error: unknown): string {
  if (typeof error === "string") return error;
  return error instanceof Error ? String(error) : "unknown error";
}
