import type { Suite } from "./catalogue.ts";
import { suites } from "./catalogue.ts";
import { ensureImage } from "./make-image.ts";
import { imagesDirectory } from "./node-image.ts";

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !suites.some((suite) => suite === name));
if (unknown.length > 0) throw new Error(`no such suite: ${unknown.join(", ")}; there are ${suites.join(", ")}`);

for (const suite of wanted as Suite[]) {
  const imagesDir = imagesDirectory(process.env);
  const image = await ensureImage({ imagesDir, suite, progress: (line) => console.error(line) });
  console.log(image.root);
}
