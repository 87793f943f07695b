import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import { gathered, type SystemDeclaration } from "#kernel/system-declaration.ts";
import { systems } from "./systems.ts";

/** Every type of event of a platform with these systems, in the order of the page in the docs. */
export function eventTypesOf(declared: readonly SystemDeclaration[]): ReadonlyMap<string, EventDefinition> {
  return new Map(Object.entries(gathered<EventDefinition>(declared.map(({ events = {} }) => events))));
}

export const eventTypes = eventTypesOf(systems);
