import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { expect, test } from "vitest";
import { createPasswordLine } from "./password-line.ts";

test("known sources go first, and one source does not fill the line", async () => {
  const line = createPasswordLine({ atOnce: 1, othersAtOnce: 1, mayWait: 6, mayWaitOfSource: 4 }, createSourceGroups());
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

test("sources that are not known have one place at most, and a known one never waits for theirs", async () => {
  const limits = { atOnce: 2, othersAtOnce: 1, mayWait: 64, mayWaitOfSource: 4 };
  const line = createPasswordLine(limits, createSourceGroups());
  const over = Promise.withResolvers<void>();
  const begun: string[] = [];
  const ask = (name: string, isKnown: boolean) =>
    line.run({ source: `192.0.2.${begun.length}`, isKnown }, async () => {
      begun.push(name);
      await over.promise;
    });
  const all = [ask("guess 1", false), ask("guess 2", false), ask("owner", true), ask("guess 3", false)];
  await Promise.resolve();
  expect(begun).toEqual(["guess 1", "owner"]);
  over.resolve();
  await Promise.all(all);
  expect(begun).toEqual(["guess 1", "owner", "guess 2", "guess 3"]);
});
