// The order of packages and groups: each imports only those before it, and no file imports tests and contracts. The
// lint finds cycles of files.
import { readFileSync } from "node:fs";
import { importsOf } from "./imports.js";
import { sourceFiles } from "./source-files.js";

/** Each step may import the steps before it; folders of one step never import each other. */
const orders = [
  {
    // Between packages; `testing`, `test` and `bench` may import all of them.
    root: "",
    steps: [
      ["proto", "sdk"],
      ["common", "console"],
      ["mtls"],
      ["image", "https", "egress", "feed", "tds", "opmsg"],
      ["compute"],
      ["gateway"],
      ["controller", "agent", "dns", "host", "inference", "ingress", "issuer", "registry", "store"],
      ["local"],
      ["cli"],
    ],
  },
  {
    root: "controller/src/",
    steps: [
      ["kernel"],
      ["access"],
      ["operation"],
      ["catalog"],
      ["fleet"],
      ["resource-kind"],
      ["services"],
      ["app"],
      ["notify"],
      ["insight", "queue", "export", "inference"],
      ["composition"],
      ["bundles"],
      ["operator"],
    ],
  },
  {
    root: "agent/src/",
    steps: [["os"], ["engines", "journal", "session"], ["backup"], ["workload", "upgrade"], ["tasks", "samples"]],
  },
];

/** Returns the number of files that it read; throws with each import against the order. Tests may import anything. */
export function checkImportOrder() {
  // A check that finds no files would pass.
  if (faultsOf("controller/src/kernel/a.ts", "controller/src/fleet/b.ts").length !== 1)
    throw new Error("an import against the order was not found");
  if (faultsOf("controller/src/app/app/app-api.ts", "controller/src/app/app/app.conformance.ts").length !== 1)
    throw new Error("an import of a conformance file was not found");
  if (faultsOf("sdk/src/client.ts", "testing/src/partial.ts").length !== 1)
    throw new Error("an import of test support was not found");
  const files = orders[0].steps.flat().flatMap((name) => filesBelow(name));
  const against = files.flatMap((file) => importsOf(file).flatMap((target) => faultsOf(file, target)));
  if (against.length > 0) throw new Error(`These imports violate the order of the groups:\n${against.join("\n")}`);
  requireLines();
  return files.length;
}

/** Throws unless each group of the controller is in the order, and has a line on the page of the architecture. */
function requireLines() {
  const { root, steps } = orders[1];
  const groups = sourceFiles(root.slice(0, -1)).flatMap((path) => folderOf(root, path) ?? []);
  const page = readFileSync(new URL("../docs/development/architecture.md", import.meta.url), "utf8");
  for (const group of new Set(groups)) {
    if (!steps.flat().includes(group)) throw new Error(`bin/import-order.js has no line for ${root}${group}`);
    if (!page.includes(`\n  ${group}/ `))
      throw new Error(`docs/development/architecture.md has no line for ${root}${group} in "Where things are"`);
  }
}

function faultsOf(file, target) {
  if (isForTests(target)) return [`${file} -> ${target}, which is for tests`];
  return orders.flatMap(({ root, steps }) => {
    const [from, to] = [folderOf(root, file), folderOf(root, target)];
    if (from === undefined || to === undefined || from === to) return [];
    const stepOf = (folder) => steps.findIndex((folders) => folders.includes(folder));
    if (stepOf(from) < 0 || stepOf(to) < 0) return [];
    return stepOf(to) < stepOf(from) ? [] : [`${file} -> ${target}`];
  });
}

/** The folder below the root that a file is in; undefined for a file beside these folders, or outside of the root. */
function folderOf(root, file) {
  const rest = file.startsWith(root) ? file.slice(root.length) : "";
  return rest.includes("/") ? rest.slice(0, rest.indexOf("/")) : undefined;
}

function filesBelow(folder) {
  const isTest = (path) => path.includes("conformance") || isForTests(path);
  return sourceFiles(folder).filter((path) => /\.tsx?$/.test(path) && !isTest(path));
}

function isForTests(path) {
  return /\.(?:test|conformance)\.ts$|^(?:testing|test)\//.test(path);
}
