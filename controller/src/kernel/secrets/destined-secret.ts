import { createHash } from "node:crypto";
import { type FieldFault, invalid, pointerOf } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Sealer } from "./sealer.ts";

declare const destined: unique symbol;

/**
 * A sealed secret of a user's that is sent to a destination of a user's, such as an API key or a password. It opens for the
 * destination that it was given for and for no other one.
 */
export type DestinedSecret = string & { readonly [destined]: true };

/**
 * Everything that decides where a secret goes and which server reads it, by the field's name: URL or host and port, the account,
 * authorities, a switch that ends verification. The order of its members is stored in the binding.
 */
export type SecretDestination = Readonly<Record<string, unknown>>;

export interface SecretBinding {
  /** Key of the object that holds the secret. */
  readonly place: string;
  readonly destination: SecretDestination;
  /** Associated data of the same secret as earlier versions sealed it. */
  readonly earlier?: string;
}

/**
 * Seals the secret with its destination; in the earlier form while a controller runs that reads no other, and then the next
 * change binds it.
 */
export function sealFor(sealer: Sealer, binding: SecretBinding, secret: string): DestinedSecret {
  const { earlier } = binding;
  const isBound = earlier === undefined || sealer.mayStore?.("destined-secret") !== false;
  return sealer.seal(secret, isBound ? bindingLabel(binding) : earlier) as DestinedSecret;
}

/** Throws for a secret that was given for another destination. */
export function openFor(sealer: Sealer, binding: SecretBinding, sealed: DestinedSecret): string {
  try {
    return sealer.open(sealed, bindingLabel(binding));
  } catch (error) {
    if (binding.earlier === undefined) throw error;
    return sealer.open(sealed, binding.earlier);
  }
}

/** Fields whose change sends a secret elsewhere, by name; empty where the destination is the same. */
export function changedDestination(before: SecretDestination, after: SecretDestination): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.filter(
    (name) => JSON.stringify(lookUp(before, name) ?? null) !== JSON.stringify(lookUp(after, name) ?? null),
  );
}

/** The fault of a stored secret that a change would send elsewhere; undefined where it may stay. */
export function carriedSecretFault(
  field: string,
  before: SecretDestination,
  after: SecretDestination,
): FieldFault | undefined {
  const changed = changedDestination(before, after);
  if (changed.length === 0) return undefined;
  const detail = `must be given anew, since ${changed.join(", ")} decides where it is sent`;
  return { field, pointer: pointerOf(field), code: "secret_required", detail };
}

/**
 * The secret after a change: the given one, or the stored one where the destination is the same. Throws INVALID_REQUEST for the
 * field where there is neither.
 */
export function secretAfter(
  sealer: Sealer,
  change: {
    readonly field: string;
    readonly given: string | undefined;
    readonly stored: { readonly sealed: DestinedSecret; readonly binding: SecretBinding } | undefined;
    readonly binding: SecretBinding;
  },
): DestinedSecret {
  const { field, given, stored, binding } = change;
  if (given !== undefined) return sealFor(sealer, binding, given);
  if (stored === undefined) throw invalid({ field, code: "required", detail: "must be given: there is none yet" });
  const fault = carriedSecretFault(field, stored.binding.destination, binding.destination);
  if (fault !== undefined) throw invalid(fault);
  return sealFor(sealer, binding, openFor(sealer, stored.binding, stored.sealed));
}

/** The associated data of a secret. */
export function bindingLabel({ place, destination }: Omit<SecretBinding, "earlier">): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.entries(destination)))
    .digest("base64url");
  return `${place} ${digest}`;
}
