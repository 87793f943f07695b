import { lookUp } from "@holdfast/common/look-up.ts";
import {
  bindingLabel,
  type DestinedSecret,
  openFor,
  type SecretBinding,
  type SecretDestination,
  sealFor,
} from "#kernel/secrets/destined-secret.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { ConfigurationFault, Destination } from "../destinations/destination.ts";
import {
  type Configuration,
  type ConfigurationValue,
  type MetricsExportObject,
  metricsExportKind,
} from "../metrics-export.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import { type Field, isSecret } from "./field.ts";

type Fields = Pick<Destination, "fields">;
type Secrets = Readonly<Record<string, ConfigurationValue>>;

/** A configuration split into public values and secrets. */
export interface SplitConfiguration {
  readonly configuration: Configuration;
  readonly secrets: Secrets;
}

export function splitConfiguration({ fields }: Fields, complete: Configuration): SplitConfiguration {
  const isHidden = (key: string) => {
    const field = lookUp(fields, key);
    return field !== undefined && isSecret(field);
  };
  const entries = Object.entries(complete);
  return {
    configuration: Object.fromEntries(entries.filter(([key]) => !isHidden(key))),
    secrets: Object.fromEntries(entries.filter(([key]) => isHidden(key))),
  };
}

/** Seals the secrets for this integration and its target, so that they cannot be opened for another target. */
export function sealSecrets(id: string, type: Destination, split: SplitConfiguration, sealer: Sealer): DestinedSecret {
  return sealFor(sealer, bindingOf(id, type, split.configuration), JSON.stringify(split.secrets));
}

/** The configuration with its opened secrets. */
export function openConfiguration(
  { metadata, spec }: Pick<MetricsExportObject, "metadata" | "spec">,
  type: Destination,
  sealer: Sealer,
) {
  const binding = bindingOf(metadata.id, type, spec.configuration);
  return { ...spec.configuration, ...(JSON.parse(openFor(sealer, binding, spec.sealedSecrets)) as Secrets) };
}

function bindingOf(id: string, type: Destination, configuration: Configuration): SecretBinding {
  const place = `${keyOf(metricsExportKind, id)} ${type.type}`;
  // Versions before the account was part of the binding sealed secrets under this label.
  const earlier = bindingLabel({
    objectKey: place,
    destination: destinationOf(type, configuration, (each) => each === true),
  });
  return { objectKey: place, destination: targetOf(type, configuration), legacyLabel: earlier };
}

/** The values that select the host and the account that secrets are sent to. */
export function targetOf(type: Fields, configuration: Configuration): SecretDestination {
  return destinationOf(type, configuration, (each) => each !== undefined);
}

function destinationOf(
  { fields }: Fields,
  configuration: Configuration,
  isPart: (target: Field["isTarget"]) => boolean,
): SecretDestination {
  const targets = Object.entries(fields).filter(([, field]) => isPart(field.isTarget));
  return Object.fromEntries(targets.map(([key, field]) => [key, lookUp(configuration, key) ?? field.default ?? null]));
}

/** The configuration with a mask in place of each secret. */
export function maskedConfiguration({ fields }: Fields, complete: Configuration): Configuration {
  const masked = (key: string, value: ConfigurationValue): ConfigurationValue => {
    const kind = lookUp(fields, key)?.kind;
    if (kind === "secret") return secretMask;
    if (kind !== "secretTexts") return value;
    return Object.fromEntries(Object.keys(value).map((name) => [name, secretMask]));
  };
  return Object.fromEntries(Object.entries(complete).map(([key, value]) => [key, masked(key, value)]));
}

/** Replaces each mask (`********`) by the stored secret; a mask without a stored secret is a fault. */
export function unmasked({ fields }: Fields, given: Configuration, stored: Secrets) {
  const faults: ConfigurationFault[] = [];
  const used = new Set<string>();
  const refuseMask = (key: string, part: string) =>
    faults.push({
      key,
      code: "invalid_value",
      detail: `must not be ${secretMask}: no ${part} is stored`,
    });
  const entries = Object.entries(given).map(([key, value]): [string, ConfigurationValue] => {
    const field = lookUp(fields, key);
    if (field === undefined || !isSecret(field)) return [key, value];
    if (field.kind === "secret") {
      if (value !== secretMask) return [key, value];
      if (lookUp(stored, key) === undefined) refuseMask(key, key);
      used.add(key);
      return [key, lookUp(stored, key) ?? value];
    }
    const before = (lookUp(stored, key) ?? {}) as Readonly<Record<string, string>>;
    const texts = Object.entries(value as Readonly<Record<string, string>>).map(([name, text]) => {
      if (text !== secretMask) return [name, text] as const;
      if (lookUp(before, name) === undefined) refuseMask(key, name);
      used.add(key);
      return [name, lookUp(before, name) ?? text] as const;
    });
    return [key, Object.fromEntries(texts)];
  });
  return { configuration: Object.fromEntries(entries) as Configuration, faults, used };
}
