import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import type { Random } from "@holdfast/testing/random.ts";

const zones = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"];
const largestWithoutDefault = 1_000;

/**
 * A value of the parameter. `extremes`: from its complete range, often an end of it; otherwise near its default.
 */
export function parameterValue(parameter: Parameter, random: Random, extremes: boolean): string {
  switch (parameter.type) {
    case "boolean":
      return random.pick(["on", "off"]);
    case "enum":
      return random.pick(parameter.values);
    case "text":
      return random.pick(zones);
    case "integer":
    case "bytes":
    case "duration":
      return String(Math.round(extremes ? anywhere(parameter, random) : nearDefault(parameter, random)));
    case "real":
      return String(extremes ? anywhere(parameter, random) : Number(nearDefault(parameter, random).toFixed(3)));
  }
}

function limitsOf({ minimum, maximum }: Parameter): { least: number; most: number } {
  return { least: minimum ?? 0, most: maximum ?? 2_147_483_647 };
}

function anywhere(parameter: Parameter, random: Random): number {
  const { least, most } = limitsOf(parameter);
  const share = random.next();
  if (share < 0.15 || (share < 0.3 && parameter.minimumEnabled === null)) return least;
  if (share < 0.3) return parameter.minimumEnabled ?? least;
  if (share < 0.6) return most;
  // Small values are as frequent as large ones.
  const from = Math.max(least, parameter.minimumEnabled ?? 1);
  return Math.min(most, Math.max(least, from * (most / from) ** random.next()));
}

function nearDefault(parameter: Parameter, random: Random): number {
  const { least, most } = limitsOf(parameter);
  const number = Number.parseFloat(parameter.default ?? "");
  // A default with another unit, or none, does not determine the scale of a bare number.
  const isBare = parameter.default !== null && /^[0-9.]+$/.test(parameter.default) && number > 0;
  const value = isBare
    ? number * (0.5 + random.next() * 1.5)
    : Math.max(least, parameter.minimumEnabled ?? 1) * largestWithoutDefault ** random.next();
  return Math.min(most, Math.max(least, value));
}
