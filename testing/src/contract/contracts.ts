import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { sourceFiles } from "../../../bin/source-files.js";
import type { Contract } from "./contract.ts";

const checkout = join(import.meta.dirname, "../../..");
const root = "controller/src";

const files = sourceFiles(root).filter((path) => path.endsWith(".conformance.ts"));

/** All contracts of the controller by path. */
export const contracts: ReadonlyMap<string, Contract> = new Map(
  await Promise.all(
    files.map(async (path) => {
      const { default: contract } = (await import(join(checkout, path))) as { readonly default: Contract };
      return [path, contract] as const;
    }),
  ),
);

/** Merges a table of all contracts. Throws if two contracts have the same entry. */
export function mergeTables<T>(
  tablesOf: (contract: Contract, path: string) => readonly (Readonly<Record<string, T>> | undefined)[],
  from: ReadonlyMap<string, Contract> = contracts,
): Readonly<Record<string, T>> {
  const merged = new Map<string, readonly [T, string]>();
  for (const [path, contract] of from) {
    for (const [name, entry] of tablesOf(contract, path).flatMap((table) => Object.entries(table ?? {}))) {
      const [, existing] = merged.get(name) ?? [];
      if (existing !== undefined) throw new Error(`${name} is in ${existing} and in ${path}; remove one of them`);
      merged.set(name, [entry, path]);
    }
  }
  return Object.fromEntries([...merged].map(([name, [entry]]) => [name, entry]));
}

/** The table of name scopes has files of the contract's folder; the result has paths below `controller/src`. */
export const nameScopes = mergeTables(({ nameScopes: scopes = {} }, path) => [
  Object.fromEntries(
    Object.entries(scopes).map(([file, scope]) => [`${dirname(path)}/${file}`.replace(`${root}/`, ""), scope]),
  ),
]);

/** Where the case of a method belongs: beside the file with its handler. */
export function contractFileOf(method: DescMethod): string {
  const handler = new RegExp(String.raw`^\s+(?:async )?\*?${method.localName}\b`, "m");
  const withService = handlerFiles().filter(({ text }) => text.includes(`/${method.parent.file.name}_pb.ts`));
  const inGroups = handlerFiles().filter(({ group }) => withService.some((file) => file.group === group));
  const candidates = [withService, inGroups].flatMap((each) => each.filter(({ text }) => handler.test(text)));
  const [found] = [...candidates, ...withService];
  if (found === undefined) return `<r>.conformance.ts beside the <r>-api.ts that implements ${method.parent.typeName}`;
  const resource = basename(found.path, ".ts").replace(/-(?:api|handlers)$/, "");
  return `${dirname(found.path)}/${resource}.conformance.ts`;
}

function handlerFiles(): { readonly path: string; readonly group: string; readonly text: string }[] {
  return sourceFiles(root)
    .filter((path) => /-(?:api|handlers|log)\.ts$/.test(path))
    .map((path) => ({
      path,
      group: path.slice(root.length + 1).split("/")[0] ?? "",
      text: readFileSync(join(checkout, path), "utf8"),
    }));
}
