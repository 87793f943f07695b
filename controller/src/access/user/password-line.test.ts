import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { expect, test } from "vitest";
import { createPasswordLine } from "./password-line.ts";

test("known sources go first, and one source does not fill the line", async () => {
  const line = createPasswordLine({ atOnce: 1, mayWait: 6, mayWaitOfSource: 4 }, createSourceGroups());
  const done: string[] = [];
  const ask = (name: string, source: string, isKnown = false) =>
    line
      .run({ source, isKnown }, async () => void done.push(name))
      .catch((error) => void done.push(`${name} ${error.key}`));
  const first = Promise.withResolvers<void>();
  const holding = line.run({ source: "192.0.2.9", isKnown: false }, () => first.promise);
  const asked = [
    ...Array.from({ length: 6 }, (_, n) => ask(`greedy-${n}`, "192.0.2.1")),
    ...Array.from({ length: 3 }, (_, n) => ask(`other-${n}`, `192.0.2.${10 + n}`)),
    ask("owner", "192.0.2.50", true),
  ];
  await Promise.resolve();
  first.resolve();
  await Promise.all([holding, ...asked]);
  expect(done).toEqual([
    "greedy-4 RATE_LIMITED",
    "greedy-5 RATE_LIMITED",
    "other-2 RATE_LIMITED",
    "owner",
    "greedy-0",
    "greedy-1",
    "greedy-2",
    "greedy-3",
    "other-0",
    "other-1",
  ]);
});
