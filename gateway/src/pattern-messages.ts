/** Readable messages for the regular expressions in the protos' validation rules. */
// biome-ignore format: a table, aligned so that it reads as one
const messages: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
  "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$":                       "must be 1 to 40 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen",
  "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$":                       "must be 1 to 63 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen",
  "^[a-z][a-z0-9-]{0,62}$":                                  "must be 1 to 63 lower-case letters, digits and hyphens, and begin with a letter",
  "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$":                         "must be lower-case letters, digits and hyphens, with no hyphen at either end",
  "^[a-z0-9][a-z0-9._@-]{0,63}$":                            "must be 1 to 64 lower-case letters, digits and any of . _ @ -, and begin with a letter or digit",
  "^[a-z_][a-z0-9_-]{0,62}$":                                "must be 1 to 63 lower-case letters, digits, _ and -, and begin with a letter or _",
  "^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?$":        "must be 1 to 64 letters, digits, spaces and any of . _ -, with a letter or digit at both ends",
  "^[A-Za-z0-9][A-Za-z0-9_.-]*$":                            "must be letters, digits and any of _ . -, and begin with a letter or digit",
  "^[a-z][a-z-]{0,31}:([a-z]{1,16}|[*])$":                   "must be a resource and an action of it, such as services:read or services:*",
  "^[a-z0-9_-]{1,128}$":                                     "must be 1 to 128 lower-case letters, digits, _ and -",
  "^[\\x21-\\x7e]+$":                                         "must be printable ASCII characters without spaces",
  "^#[0-9A-Fa-f]{6}$":                                       "must be a color such as #3366cc",
  "^[^:]+:.*$":                                              "must be a key and a value with a colon between, such as team:shop",
}),
);

/** The message for a value that does not match the pattern; undefined for a pattern without a message. */
export function patternMessage(pattern: string): string | undefined {
  return messages.get(pattern);
}
