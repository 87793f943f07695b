import type { DataField, EventDefinition } from "../../controller/src/kernel/outbox/event-definition.ts";
import { comment } from "../../gateway/src/openapi/sdk-printing.ts";

/** TypeScript types of the members whose type is not a string in JSON. */
const otherTypes: Partial<Record<DataField["type"], string>> = {
  number: "number",
  boolean: "boolean",
  "string[]": "readonly string[]",
  "object[]": "readonly object[]",
};

/** Prints the data of each event type as a type of the SDK, from the declarations of the systems. */
export function sdkEvents(eventTypes: ReadonlyMap<string, EventDefinition>): string {
  return [
    "// Printed from the declarations of events by `npm run generate`. Times are RFC 3339 strings in UTC.",
    "",
    "/** The data of each type of event. */",
    "export interface EventData {",
    ...[...eventTypes].flatMap(([type, definition]) => event(type, definition)),
    "}",
    "",
  ].join("\n");
}

function event(type: string, { when, data, optIn }: EventDefinition): string[] {
  const note = optIn === true ? " Webhooks receive it only if their `events` list it." : "";
  return [
    ...comment(`Emitted when ${when}.${note}`, "  "),
    `  readonly "${type}": {`,
    ...Object.entries(data).flatMap(([name, field]) => member(name, field)),
    "  };",
  ];
}

function member(name: string, { type, meaning, optional, nullable }: DataField): string[] {
  const text = meaning.charAt(0).toUpperCase() + meaning.slice(1);
  const mark = optional === true ? "?" : "";
  const orNull = nullable === true ? " | null" : "";
  return [...comment(`${text}.`, "    "), `    readonly ${name}${mark}: ${otherTypes[type] ?? "string"}${orNull};`];
}
