import { readdirSync } from "node:fs";
import { join } from "node:path";
import { argumentsIn, environmentsIn } from "../../support/machines/machine-inside.ts";
import { contentOf, filesBelow } from "../../conformance/secrets/planted-secrets.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

/** What of a daemon's directory has roots and images of machines, and not what it noted of them. */
const contents = ["storage-pools", "disks", "images"];

/** All that Incus wrote down and tells of its machines, and how programs were started in the one that runs; by place. */
export async function incusTexts({
  daemon,
  main,
  pidOf,
}: IncusUnderTest): Promise<ReadonlyMap<string, string | Buffer>> {
  const texts = new Map<string, string | Buffer>([["what Incus tells", JSON.stringify(await daemon.everything())]]);
  const places = readdirSync(daemon.directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !contents.includes(entry.name))
    .map(({ name }) => join(daemon.directory, name));
  for (const file of places.flatMap((place) => filesBelow(place, () => true))) texts.set(file, contentOf(file));
  const pid = await pidOf(main);
  texts.set("environments in a machine", await environmentsIn(pid));
  texts.set("arguments in a machine", await argumentsIn(pid));
  return texts;
}
