import { createHash } from "node:crypto";
import { type FieldFault, invalid, pointerOf } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Sealer } from "./sealer.ts";

declare const destined: unique symbol;

/**
 * A sealed secret of a user that the platform sends to a destination of the user's choice, such as an API key or a
 * password. The destination is part of its associated data: it can be opened for that destination only, so that a
 * change of the destination cannot leak the secret.
 */
export type DestinedSecret = string & { readonly [destined]: true };

/**
 * Everything that decides where a secret is sent and which server reads it, by field name: URL or host and port,
 * account, authorities, a switch that disables verification. The order of its members is part of the binding.
 */
export type SecretDestination = Readonly<Record<string, unknown>>;

export interface SecretBinding {
  /** etcd key of the object that contains the secret. */
  readonly objectKey: string;
  readonly destination: SecretDestination;
  /** Associated data of secrets that were sealed before they had a destination. */
  readonly legacyLabel?: string;
}

/**
 * Seals the secret for its destination. While a live controller cannot read the format "destined-secret", the secret is
 * sealed with `legacyLabel`, and the next change of the object binds it to the destination.
 */
export function sealFor(sealer: Sealer, binding: SecretBinding, secret: string): DestinedSecret {
  const { legacyLabel } = binding;
  const isBound = legacyLabel === undefined || sealer.mayStore?.("destined-secret") !== false;
  return sealer.seal(secret, isBound ? bindingLabel(binding) : legacyLabel) as DestinedSecret;
}

/** Opens the secret; throws for a secret that was sealed for another destination. */
export function openFor(sealer: Sealer, binding: SecretBinding, sealed: DestinedSecret): string {
  try {
    return sealer.open(sealed, bindingLabel(binding));
  } catch (error) {
    if (binding.legacyLabel === undefined) throw error;
    return sealer.open(sealed, binding.legacyLabel);
  }
}

/** Names of the fields whose change redirects a secret; empty if the destination is the same. */
export function changedDestination(before: SecretDestination, after: SecretDestination): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.filter(
    (name) => JSON.stringify(lookUp(before, name) ?? null) !== JSON.stringify(lookUp(after, name) ?? null),
  );
}

/** The error of a change that would send a stored secret to another destination; undefined if it may remain stored. */
export function carriedSecretFault(
  field: string,
  before: SecretDestination,
  after: SecretDestination,
): FieldFault | undefined {
  const changed = changedDestination(before, after);
  if (changed.length === 0) return undefined;
  const detail = `must be given again, since a change of ${changed.join(", ")} sends it to another server`;
  return { field, pointer: pointerOf(field), code: "secret_required", detail };
}

/** Placeholder of a stored secret in responses. In a request it means that the stored secret remains. */
export const secretMask = "********";

/**
 * The secret after a change: the provided secret, or the stored one if the destination is the same. Throws
 * INVALID_REQUEST for the field if it has neither.
 */
export function secretAfter(
  sealer: Sealer,
  change: {
    readonly field: string;
    readonly provided: string | undefined;
    readonly stored: { readonly sealed: DestinedSecret; readonly binding: SecretBinding } | undefined;
    readonly binding: SecretBinding;
  },
): DestinedSecret {
  const { field, stored, binding } = change;
  const provided = change.provided === secretMask ? undefined : change.provided;
  if (provided !== undefined) return sealFor(sealer, binding, provided);
  if (stored === undefined)
    throw invalid({ field, code: "required", detail: "must be given: no secret is stored yet" });
  const fault = carriedSecretFault(field, stored.binding.destination, binding.destination);
  if (fault !== undefined) throw invalid(fault);
  return sealFor(sealer, binding, openFor(sealer, stored.binding, stored.sealed));
}

/** The associated data of a secret. */
export function bindingLabel({ objectKey, destination }: Omit<SecretBinding, "legacyLabel">): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.entries(destination)))
    .digest("base64url");
  return `${objectKey} ${digest}`;
}
