import { join } from "node:path";
import { sourceFiles } from "../source-files.js";
import { link, type Pages, table } from "./pages.ts";

interface StateTable {
  readonly name: string;
  readonly rows: readonly (readonly [from: string, event: string, to: string, effect: string])[];
}

/** Pages of states: one for each table in a file `<r>-lifecycle.ts` of the controller, and an index. */
export async function statesPages(): Promise<Pages> {
  const files = sourceFiles("controller/src").filter((path) => path.endsWith("-lifecycle.ts"));
  const modules = await Promise.all(
    files.map(async (path): Promise<object> => import(join(import.meta.dirname, "../..", path))),
  );
  const tables = modules.flatMap((module) => Object.values(module).filter(isStateTable));
  const index = [
    "# States",
    "",
    "The transitions of each object, printed from its state table in the code. `event` is the observation or the request",
    "that causes a transition; `effect` is the action that is performed with it.",
    "",
    ...table(
      ["object", "states"],
      tables.map(({ name, rows }) => [
        link(name, `states/${name}.md`),
        [...new Set(rows.flatMap(([from, , to]) => [from, to]))].map((state) => `\`${state}\``).join(", "),
      ]),
    ),
    "",
  ];
  const pages = tables.map((each) => [`states/${each.name}.md`, statesPage(each)] as const);
  return new Map([["states.md", index.join("\n")], ...pages]);
}

function isStateTable(value: unknown): value is StateTable {
  return typeof value === "object" && value !== null && "name" in value && "rows" in value;
}

function statesPage({ name, rows }: StateTable): string {
  const cells = rows.map(([from, event, to, effect]) => [from, event, to, effect === "none" ? "" : effect]);
  return [`# States: ${name}`, "", ...table(["from", "event", "to", "effect"], cells), ""].join("\n");
}
