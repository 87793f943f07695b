/** The type of an event for people: "service.created" is "Service created". */
export function eventTitle(type: string): string {
  const text = type.replaceAll(/[._]/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The members of an event's data that a line has room for, as text. */
export function eventDetail(data: object): string {
  return Object.entries(data)
    .filter(([name, value]) => !name.endsWith("_id") && ["string", "number", "boolean"].includes(typeof value))
    .slice(0, 4)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
    .join(", ");
}

/** The service of an event; undefined for an event of another object. */
export function serviceOf(data: object): string | undefined {
  return "service_id" in data && typeof data.service_id === "string" ? data.service_id : undefined;
}
