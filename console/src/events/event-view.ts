import { bytesText, numberText } from "../format.ts";

/** Title of an event by its type: "Service created" for "service.created". */
export function eventTitle(type: string): string {
  const text = type.replaceAll(/[._]/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The texts and numbers in an event's data with their units, without ids, as one line. */
export function eventDetail(data: object): string {
  return Object.entries(data)
    .filter(([name, value]) => !leftOut.has(name) && !name.endsWith("_id") && value !== "" && !isTime(value))
    .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
    .toSorted(([a], [b]) => rankOf(a) - rankOf(b))
    .slice(0, 4)
    .map(([name, value]) => detailOf(name, value))
    .join(", ");
}

/** Members without details: ids, and the name of the owner, which the event has beside. */
const leftOut: ReadonlySet<string> = new Set(["id", "service_name", "app_name"]);

/** Members that say the most, in order; the others follow in the order of the response. */
const firstMembers = ["alert_name", "reason", "from", "to", "metric", "current_value", "threshold", "size_bytes"];

function rankOf(name: string): number {
  const rank = firstMembers.indexOf(name);
  return rank === -1 ? firstMembers.length : rank;
}

/** True for a time: the event has its own, in the column beside. */
function isTime(value: unknown): boolean {
  return typeof value === "string" && /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value);
}

/** Name of the service or app of an event at the event; undefined if the event has none. */
export function ownerNameOf(data: object): string | undefined {
  if ("service_name" in data && typeof data.service_name === "string") return data.service_name;
  return "app_name" in data && typeof data.app_name === "string" ? data.app_name : undefined;
}

function detailOf(name: string, value: string | number | boolean): string {
  const title = (unit: string) => name.slice(0, name.length - unit.length).replaceAll("_", " ");
  if (typeof value === "number" && name.endsWith("_bytes")) return `${title("_bytes")}: ${bytesText(value)}`;
  if (typeof value === "number" && name.endsWith("_seconds")) return `${title("_seconds")}: ${numberText(value)} s`;
  return `${title("")}: ${typeof value === "number" ? numberText(value) : String(value).replace(/\.$/, "")}`;
}

/** The service of an event; undefined for an event of another object. */
export function serviceOf(data: object): string | undefined {
  return "service_id" in data && typeof data.service_id === "string" ? data.service_id : undefined;
}

/** The service or app of an event; undefined for an event of another object. Sign-in events are events of their app. */
export function ownerOf(data: object): string | undefined {
  const app = "app_id" in data && typeof data.app_id === "string" ? data.app_id : undefined;
  return "auth_id" in data ? app : (serviceOf(data) ?? app);
}
