import type { DataField, EventDefinition } from "../../controller/src/kernel/outbox/event-definition.ts";
import { eventTypes } from "../../controller/src/systems.ts";
import { link, type Pages, table } from "./pages.ts";

const exampleId = "0198f2a4-9b3c-7e55-b1d2-6a0c4f8e2d31";

/** Pages of events: one for each subject, which is the part of the type before the dot, and an index. */
export function eventsPages(): Pages {
  const subjects = Map.groupBy([...eventTypes], ([type]) => type.slice(0, type.indexOf(".")));
  const inOrder = [...subjects].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const index = [
    "# Events",
    "",
    "Every event is recorded once and stored for 90 days: `GET /events`, `GET /managed-services/{id}/events`. The same JSON is the",
    "body of a webhook delivery. An event can arrive more than once; its `id` stays the same. Members can be added to `data`.",
    "`/openapi.json` has each type below `webhooks`, with its schema and an example.",
    "",
    ...table(
      ["page", "event", "emitted when"],
      inOrder.flatMap(([subject, events]) =>
        events.map(([type, { when }]) => [
          link(subject, `events/${subject}.md`),
          link(`\`${type}\``, `events/${subject}.md#${type.replaceAll(".", "")}`),
          when,
        ]),
      ),
    ),
    "",
  ];
  const pages = inOrder.map(([subject, events]) => {
    const text = [
      `# Events: ${subject}`,
      "",
      "All types, and how to receive them: [events](../events.md).",
      "",
      ...events.flatMap(([type, definition]) => section(type, definition)),
    ];
    return [`events/${subject}.md`, text.join("\n")] as const;
  });
  return new Map([["events.md", index.join("\n")], ...pages]);
}

function section(type: string, { when, data, example, planned, optIn }: EventDefinition): string[] {
  const notes = [
    optIn === true ? " Webhooks receive it only if their `events` list it." : "",
    planned === true ? " This version does not emit it yet; filters of webhooks may already list it." : "",
  ];
  return [
    `## ${type}`,
    "",
    `Emitted when ${when}.${notes.join("")}`,
    "",
    ...table(
      ["member of data", "type", "meaning"],
      Object.entries(data).map(([name, field]) => [`\`${name}\``, typeOf(field), field.meaning]),
    ),
    "",
    "```json",
    JSON.stringify({ id: exampleId, event_type: type, timestamp: "2026-11-21T10:00:00.000Z", data: example }, null, 2),
    "```",
    "",
  ];
}

function typeOf({ type, optional, nullable }: DataField): string {
  if (nullable === true) return `${type} or null`;
  return optional === true ? `${type}, optional` : type;
}
