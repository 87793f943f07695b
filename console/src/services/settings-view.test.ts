import { expect, test } from "vitest";
import { settingsChangeOf } from "./settings-view.ts";

test.each([
  [{}, {}],
  [{ name: "renamed" }, { name: "renamed" }],
  [{ cidrs: "10.8.0.0/16, ::1/128" }, { allowed_cidrs: ["10.8.0.0/16", "::1/128"] }],
  [
    { cidrs: "", isProtected: false },
    { allowed_cidrs: [], deletion_protection: false },
  ],
])("the edited fields %j are sent as %j", (edited, change) => expect(settingsChangeOf(edited)).toEqual(change));
