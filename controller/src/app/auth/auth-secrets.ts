import { createHash, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { authKind } from "./auth.ts";

/** Seals and opens what an app's sign-in keeps: it does not open as another one's. */
export interface AuthSecrets {
  seal(appId: string, plain: string): string;
  open(appId: string, sealed: string): string;
}

export function createAuthSecrets(sealer: Sealer): AuthSecrets {
  return {
    seal: (appId, plain) => sealer.seal(plain, keyOf(authKind, appId)),
    open: (appId, sealed) => (sealed === "" ? "" : sealer.open(sealed, keyOf(authKind, appId))),
  };
}

/** 256 bits in base64url, for clients and for the keys of an issuer. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** How the secret of a client is kept: it is random, so a plain hash of it tells nothing. */
export function secretHash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
