import { lookUp } from "@holdfast/common/look-up.ts";
import { carriedSecretFault } from "#kernel/secrets/destined-secret.ts";
import type { Destination } from "../destinations/destination.ts";
import type { Configuration } from "../metrics-export.ts";
import { type CheckedConfiguration, checkConfiguration } from "./check-configuration.ts";
import { isSecret } from "./field.ts";
import { targetOf, unmasked } from "./secrets.ts";

type ConfigurationInput = Readonly<Record<string, unknown>>;

/** The configuration of a new integration; it has no stored secrets that a mask could refer to. */
export function newConfiguration(destination: Destination, given: ConfigurationInput): CheckedConfiguration {
  return withSecrets(destination, checkConfiguration(destination, given), {}, given);
}

/**
 * Merges a change into the stored configuration; null removes a key. If the result has another target or
 * account, each stored secret is a fault: a secret must not be sent to a host that it was not entered for.
 */
export function changedConfiguration(
  destination: Destination,
  stored: Configuration,
  given: ConfigurationInput,
): CheckedConfiguration {
  const merged = Object.fromEntries(Object.entries({ ...stored, ...given }).filter(([, value]) => value !== null));
  return withSecrets(destination, checkConfiguration(destination, merged), stored, given);
}

function withSecrets(
  destination: Destination,
  checked: CheckedConfiguration,
  stored: Configuration,
  given: ConfigurationInput,
): CheckedConfiguration {
  if (!checked.ok) return checked;
  const { configuration, faults, used } = unmasked(destination, checked.configuration, stored);
  const [before, after] = [targetOf(destination, stored), targetOf(destination, configuration)];
  const carried = Object.entries(destination.fields)
    .filter(
      ([key, field]) =>
        isSecret(field) && lookUp(stored, key) !== undefined && lookUp(configuration, key) !== undefined,
    )
    .filter(([key]) => used.has(key) || lookUp(given, key) === undefined)
    .flatMap(([key]) => {
      const fault = carriedSecretFault(key, before, after);
      return fault === undefined ? [] : [{ key, code: fault.code, detail: fault.detail }];
    });
  const all = [...faults, ...carried];
  return all.length > 0 ? { ok: false, faults: all } : { ok: true, configuration };
}
