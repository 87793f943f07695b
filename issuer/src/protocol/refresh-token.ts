import type { DerivedKeys } from "../derived-keys.ts";

/** A refresh token: `<family>.<generation>.<HMAC>`. The token is not stored, so the database does not reveal it. */
export interface RefreshToken {
  readonly family: string;
  readonly generation: number;
}

const pattern = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})\.([A-Za-z0-9_-]{43})$/;
const purpose = "refresh token";

export function refreshTokenText({ family, generation }: RefreshToken, keys: DerivedKeys): string {
  const text = `${family}.${generation}`;
  return `${text}.${keys.mac(purpose, text)}`;
}

/** Parses a refresh token; undefined if this app did not issue it. */
export function readRefreshToken(text: string, keys: DerivedKeys): RefreshToken | undefined {
  const [, family = "", generation = "", mac = ""] = pattern.exec(text) ?? [];
  if (family === "" || !keys.isMac(purpose, `${family}.${generation}`, mac)) return undefined;
  return { family, generation: Number(generation) };
}
