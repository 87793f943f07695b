import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createClient } from "./client.ts";

test("the README names all groups of methods of the client", () => {
  const text = readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8");
  const [, contents = ""] = /## Contents\n\n(.*?) have one method for each method/s.exec(text) ?? [];
  const named = [...contents.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const client = createClient({ baseUrl: "https://holdfast.test" });
  const groups = Object.entries(client).flatMap(([name, value]) => (typeof value === "object" ? [name] : []));
  expect(named.toSorted()).toEqual(groups.toSorted());
});
