import type { DerivedKeys } from "../derived-keys.ts";

/** Secrets in a mail. Both are derived from its id, so any replica can send the mail again and nothing is stored. */
export interface MailSecrets {
  readonly code: string;
  readonly linkToken: string;
}

export function mailSecretsOf(id: string, keys: DerivedKeys): MailSecrets {
  const number = Buffer.from(keys.mac("mailed code", id), "base64url").readUIntBE(0, 6) % 1_000_000;
  return { code: String(number).padStart(6, "0"), linkToken: keys.mac("mailed link", id) };
}

/** Normalizes a typed code: removes spaces and dashes. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s-]/g, "");
}
