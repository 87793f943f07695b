import type { DerivedKeys } from "../derived-keys.ts";

/** `family.generation.HMAC`: nothing of it is stored, so nobody finds a token in the database. */
export interface RefreshToken {
  readonly family: string;
  readonly generation: number;
}

const form = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})\.([A-Za-z0-9_-]{43})$/;
const purpose = "refresh token";

export function refreshTokenText({ family, generation }: RefreshToken, keys: DerivedKeys): string {
  const text = `${family}.${generation}`;
  return `${text}.${keys.mac(purpose, text)}`;
}

/** Undefined for what this app never handed out. */
export function readRefreshToken(text: string, keys: DerivedKeys): RefreshToken | undefined {
  const [, family = "", generation = "", mac = ""] = form.exec(text) ?? [];
  if (family === "" || !keys.isMac(purpose, `${family}.${generation}`, mac)) return undefined;
  return { family, generation: Number(generation) };
}
