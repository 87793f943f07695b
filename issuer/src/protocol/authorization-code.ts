import { randomBytes } from "node:crypto";
import type { DerivedKeys } from "../derived-keys.ts";

/** 256 random bits with their HMAC: a code that this app never handed out is refused without a look at the database. */
const form = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;
/** Of issuers of the version before, whose codes live for a minute after they are replaced. */
const formBefore = /^[A-Za-z0-9_-]{43}$/;
const purpose = "authorization code";

export function newAuthorizationCode(keys: DerivedKeys): string {
  const random = randomBytes(32).toString("base64url");
  return `${random}.${keys.mac(purpose, random)}`;
}

/** `ours` has a true HMAC, and `before` might be one of the version before. */
export function kindOfCode(code: string, keys: DerivedKeys): "ours" | "before" | "none" {
  const [, random = "", mac = ""] = form.exec(code) ?? [];
  if (random !== "") return keys.isMac(purpose, random, mac) ? "ours" : "none";
  return formBefore.test(code) ? "before" : "none";
}
