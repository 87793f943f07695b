import { readdirSync } from "node:fs";
import { join } from "node:path";
import { argumentsIn, environmentsIn } from "@holdfast/testing/machines/machine-inside.ts";
import { contentOf, filesBelow } from "../../conformance/secrets/planted-secrets.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

/** Parts of a daemon's directory that contain roots and images of machines; the other parts are its own records. */
const contents = ["storage-pools", "disks", "images"];

/**
 * All texts that Incus stores and reports about its machines, and the command lines in the running one; by location.
 */
export async function incusTexts({
  daemon,
  main,
  pidOf,
}: IncusUnderTest): Promise<ReadonlyMap<string, string | Buffer>> {
  const texts = new Map<string, string | Buffer>([["reported by Incus", JSON.stringify(await daemon.everything())]]);
  const directories = readdirSync(daemon.directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !contents.includes(entry.name))
    .map(({ name }) => join(daemon.directory, name));
  for (const file of directories.flatMap((place) => filesBelow(place, () => true))) texts.set(file, contentOf(file));
  const pid = await pidOf(main);
  texts.set("environments in a machine", await environmentsIn(pid));
  texts.set("arguments in a machine", await argumentsIn(pid));
  return texts;
}
