import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { deletionTexts } from "./service-deletion.ts";

const backups = partial<NonNullable<ManagedService["backups"]>>({});

test.each([
  [
    "with backups",
    { backups, skip: false },
    "Delete orders and all its data?",
    "Its backups are retained for 7 days; to create it again: holdfast services undelete 019a",
  ],
  [
    "with backups that are deleted too",
    { backups, skip: true },
    "Delete orders and all its data and automated backups, permanently?",
    "Its data and automated backups are deleted permanently.",
  ],
  [
    "without backups",
    { backups: null, skip: false },
    "Delete orders and all its data, permanently?",
    "Its data are deleted permanently.",
  ],
])("the texts of the deletion of a service %s say what remains", (_, { backups: found, skip }, question, result) => {
  const service = { id: "019a", name: "orders", backups: found };
  expect(deletionTexts(service, skip, "holdfast")).toEqual({ question, result });
});
