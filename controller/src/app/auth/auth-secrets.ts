import { createHash, randomBytes } from "node:crypto";
import {
  type DestinedSecret,
  openFor,
  type SecretBinding,
  type SecretDestination,
  sealFor,
  secretAfter,
} from "#kernel/secrets/destined-secret.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { authKind } from "./auth.ts";

/** Seals and opens what an app's sign-in keeps: it does not open as another one's. */
export interface AuthSecrets {
  seal(appId: string, plain: string): string;
  open(appId: string, sealed: string): string;
  /** The same for a secret that is sent to a destination of the app's owner. */
  sealFor(appId: string, destination: SecretDestination, plain: string): DestinedSecret;
  openFor(appId: string, destination: SecretDestination, sealed: DestinedSecret): string;
  /** The secret after a change. Throws INVALID_REQUEST for the field where the stored one would go elsewhere. */
  after(appId: string, change: DestinedChange): DestinedSecret;
}

interface DestinedChange {
  readonly field: string;
  readonly given: string | undefined;
  readonly stored: { readonly sealed: DestinedSecret; readonly destination: SecretDestination } | undefined;
  readonly destination: SecretDestination;
}

export function createAuthSecrets(sealer: Sealer): AuthSecrets {
  const bindingOf = (appId: string, destination: SecretDestination): SecretBinding => {
    const place = keyOf(authKind, appId);
    return { place, destination, earlier: place };
  };
  return {
    seal: (appId, plain) => sealer.seal(plain, keyOf(authKind, appId)),
    open: (appId, sealed) => (sealed === "" ? "" : sealer.open(sealed, keyOf(authKind, appId))),
    sealFor: (appId, destination, plain) => sealFor(sealer, bindingOf(appId, destination), plain),
    openFor: (appId, destination, sealed) => openFor(sealer, bindingOf(appId, destination), sealed),
    after: (appId, { stored, destination, ...change }) =>
      secretAfter(sealer, {
        ...change,
        stored: stored && { sealed: stored.sealed, binding: bindingOf(appId, stored.destination) },
        binding: bindingOf(appId, destination),
      }),
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
