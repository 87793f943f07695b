import { randomBytes } from "node:crypto";
import type { DerivedKeys } from "../derived-keys.ts";

/** 256 random bits with their HMAC: `<random>.<mac>`. A code that this app did not issue is refused without a query. */
const pattern = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;
const purpose = "authorization code";

export function newAuthorizationCode(keys: DerivedKeys): string {
  const random = randomBytes(32).toString("base64url");
  return `${random}.${keys.mac(purpose, random)}`;
}

/** True if the code has a valid HMAC of this app. */
export function isIssuedCode(code: string, keys: DerivedKeys): boolean {
  const [, random = "", mac = ""] = pattern.exec(code) ?? [];
  return random !== "" && keys.isMac(purpose, random, mac);
}
