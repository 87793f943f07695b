import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { lookUp } from "@holdfast/common/look-up.ts";
import { billOfMaterials } from "./bill-of-materials.ts";
import { type RecipeName, recipeNames } from "./catalog.ts";
import { ensureGuestBoot, isGuestBoot, makeNewestGuestBoot, remakeGuestBoot } from "./guest-boot.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type ListedImage, listImages } from "./image-list.ts";
import { readManifest } from "./image-manifest.ts";
import { ensureImage, makeNewest, remakeImage } from "./make-image.ts";
import { imagesDirectory } from "./node-image.ts";
import { readAdditions } from "./additions.ts";
import { sweepImages } from "./sweep-images.ts";

const usage = `holdfast images [list]            lists the node images of this host: contents, size, build time
holdfast images make [RECIPE...]  builds the newest image of a recipe if there is none (${recipeNames.join(", ")}), or,
                                  for guest, the kernel of virtual machines
holdfast images update [RECIPE...] builds an image from the mirror's current packages; machines keep their images and kernels
                                  until they are updated
holdfast images remake IMAGE      builds an image again from the stored packages and artifacts; needs no network
holdfast images contents IMAGE    prints its packages and artifacts as CycloneDX in JSON
holdfast images sweep [--dry-run] [--now]
                                  removes unused images and their files: after some days, or now`;

const imagesDir = imagesDirectory(process.env);
const additions = await readAdditions((variable) => lookUp(process.env, variable) ?? "");
const progress = (line: string) => {
  process.stderr.write(`${line}\n`);
};
const print = (text: string) => {
  process.stdout.write(`${text}\n`);
};

/** Commands by name, with their positional arguments. */
const commands: Readonly<Record<string, (words: readonly string[], flags: Flags) => Promise<void>>> = {
  async list() {
    const images = await listImages(imagesDir, Date.now(), additions);
    for (const image of images) print(described(image));
    if (images.length === 0) print(`no images in ${imagesDir}`);
  },
  async make(words) {
    for (const what of choicesOf(words))
      if (what === "guest") print(dirname((await ensureGuestBoot({ imagesDir })).kernel));
      else print((await ensureImage({ imagesDir, recipe: what, additions, progress })).root);
  },
  async update(words) {
    for (const what of choicesOf(words))
      if (what === "guest") print((await makeNewestGuestBoot({ imagesDir })).id);
      else print((await makeNewest({ imagesDir, recipe: what, additions, progress })).id);
  },
  async remake([id = ""]) {
    if (isGuestBoot(id)) print(dirname((await remakeGuestBoot(id, { imagesDir })).kernel));
    else print((await remakeImage(imagesDir, id, { progress })).root);
  },
  async contents([id = ""]) {
    const manifest = readManifest(imagesDir, id);
    if (manifest === undefined)
      throw new ImageImpossible(`there is no manifest of the image ${id}; see holdfast images list`);
    print(JSON.stringify(billOfMaterials(manifest), undefined, 2));
  },
  async sweep(_words, { dryRun, now: atOnce }) {
    const { trees, manifests, packages, artifacts, archivedBytes } = await sweepImages({
      imagesDir,
      now: Date.now(),
      additions,
      dryRun,
      atOnce,
    });
    const verb = dryRun ? "would remove" : "removed";
    for (const id of trees) print(`${verb} the tree of ${id}`);
    for (const id of manifests) print(`${verb} the manifest and files of ${id}`);
    print(`${verb} ${packages} packages and ${artifacts} artifacts, ${megabytes(archivedBytes)}`);
  },
};

interface Flags {
  readonly dryRun: boolean;
  readonly now: boolean;
}

/** Parses names of recipes; `guest` stands for the guest kernel. */
function choicesOf(words: readonly string[]): readonly (RecipeName | "guest")[] {
  const choices = [...recipeNames, "guest"] as const;
  const unknown = words.filter((word) => !choices.some((choice) => choice === word));
  if (unknown.length > 0)
    throw new ImageImpossible(`no such recipe: ${unknown.join(", ")}; there are ${choices.join(", ")}`);
  return words.length === 0 ? ["trixie"] : (words as (RecipeName | "guest")[]);
}

function described(image: ListedImage): string {
  const { id, unpacked: here, newest, used, packages, artifacts, archivedBytes, software, made } = image;
  const marks = [newest ? "newest" : "", used ? "in use" : "", here ? "" : "not unpacked"].filter(
    (mark) => mark !== "",
  );
  const size =
    made === undefined ? "" : `, ${megabytes(made.treeBytes)} unpacked, made in ${Math.round(made.ms / 1_000)} s`;
  const when = made === undefined ? "" : ` on ${new Date(made.at).toISOString().slice(0, 16)}Z`;
  return [
    `${id}${marks.length > 0 ? ` (${marks.join(", ")})` : ""}`,
    `  ${software.join(", ")}`,
    `  ${packages} packages${artifacts === 0 ? "" : `, ${artifacts} artifacts`}, ${megabytes(archivedBytes)}${size}${when}`,
  ].join("\n");
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

try {
  const { positionals, values } = parseArgs({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: { "dry-run": { type: "boolean", default: false }, now: { type: "boolean", default: false } },
  });
  const [name = "list", ...words] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw new ImageImpossible(usage);
  await command(words, { dryRun: values["dry-run"], now: values.now });
} catch (error) {
  if (!(error instanceof ImageImpossible) && !(error instanceof TypeError)) throw error;
  progress(error instanceof ImageImpossible ? error.message : usage);
  process.exitCode = 1;
}
// The channel to the launcher would keep this process alive.
if (process.connected) process.disconnect();
