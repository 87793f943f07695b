import { expect, test } from "vitest";
import { sdkEvents } from "./docs/sdk-events.ts";

test("the data of an event are printed with the types of JSON and their meanings", () => {
  const printed = sdkEvents(
    new Map([
      [
        "note.rendered",
        {
          when: "a note was rendered",
          data: {
            note_id: { type: "uuid", meaning: "the note" },
            at: { type: "time", meaning: "time of the change", nullable: true },
            words: { type: "string[]", meaning: "its words", optional: true },
            checks: { type: "object[]", meaning: "`name` and `status`" },
            count: { type: "number", meaning: "number of its words" },
            automatic: { type: "boolean", meaning: "true: by the platform" },
          },
          example: {},
          optIn: true,
        },
      ],
    ]),
  );
  expect(printed.split("\n").slice(2)).toEqual([
    "/** The data of each type of event. */",
    "export interface EventData {",
    "  /** Emitted when a note was rendered. Webhooks receive it only if their `events` list it. */",
    '  readonly "note.rendered": {',
    "    /** The note. */",
    "    readonly note_id: string;",
    "    /** Time of the change. */",
    "    readonly at: string | null;",
    "    /** Its words. */",
    "    readonly words?: readonly string[];",
    "    /** `name` and `status`. */",
    "    readonly checks: readonly object[];",
    "    /** Number of its words. */",
    "    readonly count: number;",
    "    /** True: by the platform. */",
    "    readonly automatic: boolean;",
    "  };",
    "}",
    "",
  ]);
});
