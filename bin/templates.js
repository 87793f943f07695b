// A released version of a template never changes: stacks that were launched with it name it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

const folder = join(checkout, "controller", "templates");

/** Returns the number of versions; throws with each that changed, disappeared, or is not among the released ones. */
export function checkTemplates() {
  const released = new Map(Object.entries(JSON.parse(readFileSync(join(folder, "released.json"), "utf8"))));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".yaml"));
  const faults = [
    ...files.flatMap((file) => faultsOf(file, released.get(file))),
    ...[...released.keys()].filter((file) => !files.includes(file)).map((file) => `${file} is gone`),
  ];
  if (faults.length > 0)
    throw new Error(`a released template stays as it is; make a new version:\n${faults.join("\n")}`);
  return files.length;
}

function faultsOf(file, digest) {
  const now = createHash("sha256")
    .update(readFileSync(join(folder, file)))
    .digest("hex");
  if (digest === undefined) return [`${file} is not in released.json: "${file}": "${now}"`];
  return digest === now ? [] : [`${file} has changed`];
}
