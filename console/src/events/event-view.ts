import { bytesText, numberText } from "../format.ts";

/** Title of an event by its type: "Service created" for "service.created". */
export function eventTitle(type: string): string {
  const text = type.replaceAll(/[._]/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The texts and numbers in an event's data with their units, without ids, as one line. */
export function eventDetail(data: object): string {
  return Object.entries(data)
    .filter(([name, value]) => !name.endsWith("_id") && value !== "")
    .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
    .slice(0, 4)
    .map(([name, value]) => detailOf(name, value))
    .join(", ");
}

function detailOf(name: string, value: string | number | boolean): string {
  const title = (unit: string) => name.slice(0, name.length - unit.length).replaceAll("_", " ");
  if (typeof value === "number" && name.endsWith("_bytes")) return `${title("_bytes")}: ${bytesText(value)}`;
  if (typeof value === "number" && name.endsWith("_seconds")) return `${title("_seconds")}: ${numberText(value)} s`;
  return `${title("")}: ${typeof value === "number" ? numberText(value) : String(value)}`;
}

/** The service of an event; undefined for an event of another object. */
export function serviceOf(data: object): string | undefined {
  return "service_id" in data && typeof data.service_id === "string" ? data.service_id : undefined;
}

/** The service or app of an event; undefined for an event of another object. */
export function ownerOf(data: object): string | undefined {
  return serviceOf(data) ?? ("app_id" in data && typeof data.app_id === "string" ? data.app_id : undefined);
}
