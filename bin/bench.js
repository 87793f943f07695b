// `npm run bench -- NAME [FLAG...]`: installs missing software, then runs bench/src/NAME.ts under the pinned Node.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runPinned } from "./run-pinned.js";
import { checkout, progress } from "./set-up.js";

const directory = join(checkout, "bench", "src");
const names = readdirSync(directory)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -3));
const [name, ...flags] = process.argv.slice(2);
if (names.includes(name)) {
  await runPinned(["--disable-warning=DEP0123", join(directory, `${name}.ts`), ...flags]);
} else {
  progress(`usage: npm run bench -- ${names.join(" | ")} [FLAG...]`);
  process.exitCode = 1;
}
