import type { DerivedKeys } from "../derived-keys.ts";

/** What a mail lets somebody in by. Both follow from its id, so that any replica can send it again and none is stored. */
export interface MailSecrets {
  readonly code: string;
  readonly linkToken: string;
}

export function mailSecretsOf(id: string, keys: DerivedKeys): MailSecrets {
  const number = Buffer.from(keys.mac("mailed code", id), "base64url").readUIntBE(0, 6) % 1_000_000;
  return { code: String(number).padStart(6, "0"), linkToken: keys.mac("mailed link", id) };
}

/** Reads what people type: spaces and dashes between digits are no mistake. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s-]/g, "");
}
