// `npm run bench -- NAME [FLAG...]`: sets up what is missing, then runs bench/src/NAME.ts under the pinned Node.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

const directory = join(checkout, "bench", "src");
const names = readdirSync(directory)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -3));
const [name, ...flags] = process.argv.slice(2);
try {
  if (!names.includes(name)) throw new SetUpError(`usage: npm run bench -- ${names.join(" | ")} [FLAG...]`);
  const { node, env } = await setUp();
  const child = spawn(node, ["--disable-warning=DEP0123", join(directory, `${name}.ts`), ...flags], {
    env,
    stdio: "inherit",
  });
  process.on("SIGINT", () => child.kill("SIGINT"));
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}
