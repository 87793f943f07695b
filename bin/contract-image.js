// The contract: the descriptor of each of our protos as JSON below proto/contract, so that branches with different
// protos never change the same file. The comparison with it needs neither git history nor a network.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

export const contractFolder = "proto/contract";
const columns = 120;

/**
 * Builds an image of the current protos; calls back with it and with a function that throws for each breaking change.
 */
export async function withImage(tools, act) {
  const directory = mkdtempSync(join(checkout, "node_modules", ".contract-"));
  const now = join(directory, "now.json");
  const agreed = join(directory, "agreed.json");
  try {
    await tools.run("buf", ["build", "--exclude-source-info", "-o", now]);
    const image = JSON.parse(readFileSync(now, "utf8"));
    writeFileSync(agreed, JSON.stringify(agreedImage(image)));
    return await act(image, () =>
      tools.run("buf", ["breaking", now, "--against", agreed, "--config", "proto/contract.yaml"]),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Our protos of an image, as files of the contract by path in the checkout. */
export function contractFiles(image) {
  const holdfastFiles = image.file.filter(({ name }) => name.startsWith("holdfast/"));
  return new Map(holdfastFiles.map((file) => [pathOf(file.name), `${print(file)}\n`]));
}

/**
 * The image of the agreed protos. Protos of other packages are not part of the contract and come from the current
 * image.
 */
export function agreedImage(now) {
  const files = sourceFiles(contractFolder).filter((path) => path.endsWith(".json"));
  const agreed = files.map((path) => JSON.parse(readFileSync(join(checkout, path), "utf8")));
  const foreignFiles = now.file.filter(({ name }) => !name.startsWith("holdfast/"));
  return { file: inOrder([...foreignFiles, ...agreed]) };
}

/** Replaces the agreed contract by the image. */
export function writeContract(image, root = checkout) {
  rmSync(join(root, contractFolder), { recursive: true, force: true });
  for (const [path, text] of contractFiles(image)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function pathOf(proto) {
  return `${contractFolder}/${proto.replace(/\.proto$/, ".json")}`;
}

/** Sorts files so that each follows the files that it imports, as an image requires. */
function inOrder(files) {
  const byName = new Map(files.map((file) => [file.name, file]));
  const placed = new Set();
  const append = (file) => {
    if (file === undefined || placed.has(file)) return;
    for (const name of file.dependency ?? []) append(byName.get(name));
    placed.add(file);
  };
  for (const file of files) append(file);
  return [...placed];
}

/** JSON with a line for each value that fits into one, so that a change of a field is a change of its line. */
function print(value, indent = "", name = "") {
  const line = JSON.stringify(value);
  if (typeof value !== "object" || value === null || indent.length + name.length + line.length < columns) return line;
  const inner = `${indent} `;
  const members = Array.isArray(value)
    ? value.map((each) => `${inner}${print(each, inner)}`)
    : Object.entries(value).map(([key, each]) => {
        const prefix = `${JSON.stringify(key)}: `;
        return `${inner}${prefix}${print(each, inner, prefix)}`;
      });
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${members.join(",\n")}\n${indent}${close}`;
}
