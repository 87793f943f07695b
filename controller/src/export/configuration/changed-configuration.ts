import { lookUp } from "@holdfast/common/look-up.ts";
import { carriedSecretFault } from "#kernel/secrets/destined-secret.ts";
import type { Destination } from "../destinations/destination.ts";
import type { Configuration } from "../metrics-export.ts";
import { type CheckedConfiguration, checkConfiguration } from "./check-configuration.ts";
import { isSecret } from "./field.ts";
import { targetOf, unmasked } from "./secrets.ts";

type Given = Readonly<Record<string, unknown>>;

/** A new integration's configuration: nothing is kept that a mask could stand for. */
export function newConfiguration(destination: Destination, given: Given): CheckedConfiguration {
  return withSecrets(destination, checkConfiguration(destination, given), {}, given);
}

/**
 * Pure: what is there with what is given; null takes a key away. Where it then leads elsewhere, kept secrets are faults: they must
 * not go to a host that they were not given for.
 */
export function changedConfiguration(
  destination: Destination,
  kept: Configuration,
  given: Given,
): CheckedConfiguration {
  const merged = Object.fromEntries(Object.entries({ ...kept, ...given }).filter(([, value]) => value !== null));
  return withSecrets(destination, checkConfiguration(destination, merged), kept, given);
}

function withSecrets(
  destination: Destination,
  checked: CheckedConfiguration,
  kept: Configuration,
  given: Given,
): CheckedConfiguration {
  if (!checked.ok) return checked;
  const { configuration, faults, used } = unmasked(destination, checked.configuration, kept);
  const [before, after] = [targetOf(destination, kept), targetOf(destination, configuration)];
  const carried = Object.entries(destination.fields)
    .filter(
      ([key, field]) => isSecret(field) && lookUp(kept, key) !== undefined && lookUp(configuration, key) !== undefined,
    )
    .filter(([key]) => used.has(key) || lookUp(given, key) === undefined)
    .flatMap(([key]) => {
      const fault = carriedSecretFault(key, before, after);
      return fault === undefined ? [] : [{ key, code: fault.code, detail: fault.detail }];
    });
  const all = [...faults, ...carried];
  return all.length > 0 ? { ok: false, faults: all } : { ok: true, configuration };
}
